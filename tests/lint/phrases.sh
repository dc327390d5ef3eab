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
one behind the other	one after another
[( ]?objects? a line	one JSON object per line
writes? a line of JSON	writes one line of JSON
(how|how much) a job stands	the state of a job
print errors alone	print only errors
goes on where it (was|stopped)	continues where it stopped
what the workers? (of a job )?said	the logs of the workers
0 is for ever	0 for no limit
of them not 0	nonzero
one (number|value|weight) a (row|column|pixel)	one per row
takes? of the order of a second	takes about a second
laid over white	drawn on white
columns what the model says	columns: predicted classes
what a store can do	the speed of a store
bytes of an? [a-z]+ are not those of	malformed
is no plain file	is not a plain file
is no number	is not a number
is no (whole|real) number	is not a whole number
is no (file|folder|option|array)["'.,:;]	is not a file
END
)

# FILE:TEXT of lines that may keep such a phrase.
exceptions='tests/lint/phrases\.sh:'

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
