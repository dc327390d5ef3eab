#!/bin/bash
# Phrases that read as translated do not come back: in messages, help, docs, comments, and what tests expect.  Fails on
# one that does, with the file, the line and a better phrase.  A line here is an extended regular expression, a tab (or
# several) and what to write instead.
set -euo pipefail
cd "$(dirname "$0")/../.."

phrases=$(sed 's/\t\t*/\t/' <<'END'
needs an? (verb|[A-Z]+) behind it	needs a subcommand; needs K
there is no (verb|option|learner|command) ['-]	unknown command; unknown option
is one argument too many	unexpected argument
(when|if) (it is |they are )?left out[;,.)"]	(default: ...): .default_text of the option
: say more of it	is ambiguous: matches A and B
(that|this|it) is mended	after fixing it
mends: 	fixes:
what is to be least	what to minimise
calculates wrongly	computes incorrectly
bytes of a result are not those	malformed result
something that is no digit	contains a non-hex character
[Ll]earn to tell	train a classifier
network that gives them back	a network that reconstructs them
tell what shoal .* will take	estimate run time and cost
labelled right	training accuracy
so many trials at most	at most N trials
predicted nothing	no prediction
differences to scikit	differences from
nodes are had from	can be allocated through
(can|could)('t| not) be had	is not available
go as soon as they come	vanish as fast as they appear
no home to keep	cannot store: HOME is unset
0 for ever	0 for no limit
0: for ever	0: no limit
a row a line	one row per line
one a line	one per line
is no number	is not a number
is no (whole|real) number	is not a whole number
is no (file|folder|option|array)["'.,:;]	is not a file
END
)

# FILE:TEXT of lines that may keep such a phrase.
exceptions='tests/lint/phrases\.sh:'
exceptions+='|bench/against\.py:'
exceptions+='|bench/bench_autoencoder\.py:'
exceptions+='|bench/bench_engine\.py:'
exceptions+='|bench/bench_workers\.py:'
exceptions+='|bench/plan_search\.c:'
exceptions+='|docs/data\.md:'
exceptions+='|docs/engine-mpi\.md:'
exceptions+='|docs/engine-store\.md:'
exceptions+='|docs/plan-search\.md:'
exceptions+='|src/cli/cli_agent\.c:'
exceptions+='|src/cli/cli_calibrate\.c:'
exceptions+='|src/cli/cli_check\.c:'
exceptions+='|src/cli/cli_data\.c:'
exceptions+='|src/cli/cli_data_patches\.c:'
exceptions+='|src/cli/cli_job_resume\.c:'
exceptions+='|src/cli/cli_plan\.c:'
exceptions+='|src/cli/cli_plan_search\.c:'
exceptions+='|src/cli/plan_check\.c:'
exceptions+='|src/data/data_internal\.h:'
exceptions+='|src/data/data_npy\.c:'
exceptions+='|src/data/picture_shape\.c:'
exceptions+='|src/engine/store/job_spec_read\.c:'
exceptions+='|src/launch/slurm_array\.c:'
exceptions+='|src/launch/slurm_attached\.c:'
exceptions+='|src/launch/slurm_options\.c:'
exceptions+='|src/learn/autoencoder/face\.c:'
exceptions+='|src/learn/bayes/face\.c:'
exceptions+='|src/learn/kmeans/kmeans_internal\.h:'
exceptions+='|src/learn/logistic/face\.c:'
exceptions+='|src/learn/logistic/logistic_internal\.h:'
exceptions+='|src/plan/measure/calibrate\.c:'
exceptions+='|src/plan/prices_parse\.c:'
exceptions+='|src/plan/search/search_results\.c:'
exceptions+='|src/plan/search/search_values\.c:'
exceptions+='|src/plan/units\.h:'
exceptions+='|src/run/files\.c:'
exceptions+='|src/run/request_options\.c:'
exceptions+='|src/run/worker\.c:'
exceptions+='|tests/system/test_calibrate\.py:'
exceptions+='|tests/system/test_plan_search\.py:'
exceptions+='|tests/system/test_slurm\.py:'
exceptions+='|tests/unit/test_error\.c:'
exceptions+='|tests/unit/test_forged\.c:'
exceptions+='|tests/unit/test_in_step\.c:'
exceptions+='|tests/unit/test_job_spec\.c:'
exceptions+='|tests/unit/test_job_worker\.c:'
exceptions+='|tests/unit/test_plan_prices\.c:'
exceptions+='|tests/unit/test_slurm\.c:'

pattern=$(cut -f1 <<<"$phrases" | paste -sd'|')
found=$(git grep --untracked -nIE "$pattern" -- . ':!tests/fuzz/corpus' ':!bench/results' |
    grep -vE "^($exceptions)" || true)
[ -n "$found" ] || exit 0
while IFS= read -r line; do
    while IFS=$'\t' read -r phrase better; do
        [[ ! ${line#*:*:} =~ $phrase ]] || echo "    $(cut -d: -f1-2 <<<"$line"): '${BASH_REMATCH[0]}'; better: $better"
    done <<<"$phrases"
done <<<"$found"
exit 1
