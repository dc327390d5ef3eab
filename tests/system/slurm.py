"""Slurm for real: munge, slurmctld on this machine and a slurmd on each host of hosts.py.

    hosts.isolate(*slurm.PROGRAMS)
    with hosts.Hosts(folder, 2) as far, slurm.Slurm(far) as cluster:
        subprocess.run(["sbatch", ...], env={**os.environ, **cluster.variables()})

Each node has two cores and there is one partition, base.  There is no accounting.  All ends with the test.
"""
import os
import shutil
import subprocess

import hosts
from processes import read, wait_until

PROGRAMS = "munged slurmctld slurmd sbatch squeue scancel srun salloc scontrol sinfo".split()
FOLDER = "/run/slurm-test"  # seen by all hosts
CONFIG = f"{FOLDER}/slurm.conf"
SOON = 300

SETTINGS = """ClusterName=test
SlurmctldHost={here}({near})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld
SlurmdLogFile={folder}/log/slurmd.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
SlurmdTimeout=15
KillWait=5
MinJobAge=30
CommunicationParameters=NoAddrCache
SchedulerParameters=sched_min_interval=200000,batch_sched_delay=1,requeue_delay=1
NodeName=DEFAULT CPUs=2 RealMemory=1000 Sockets=1 CoresPerSocket=2 ThreadsPerCore=1
{nodes}
PartitionName=base Nodes=ALL Default=YES MaxTime=60 State=UP
"""


class Slurm:
    def __init__(self, far):
        self.far, self.processes = far, []
        for name in ("state", "spool", "log", "run", "munge"):
            os.makedirs(f"{FOLDER}/{name}")
        nodes = "\n".join(f"NodeName={host.name} NodeAddr={host.address} State=UNKNOWN" for host in far)
        with open(CONFIG, "w", encoding="ascii") as file:
            file.write(SETTINGS.format(here=os.uname().nodename, near=hosts.NEAR, folder=FOLDER, nodes=nodes))
        with open(f"{FOLDER}/cgroup.conf", "w", encoding="ascii") as file:  # a namespace hides the groups' mount
            file.write("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\nConstrainCores=no\nConstrainRAMSpace=no\n")
        self.start_munge()
        self.start("slurmctld", "-D", "-c", "-f", CONFIG)
        for host in far:
            self.start_node(host)
        wait_until(self.is_up, SOON, "all nodes are idle")

    def start(self, *words):
        """In the foreground of a session of its own: a pipe or terminal as its standard input would harm what it
        starts."""
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env={**os.environ,
                                                                   **self.variables()}, start_new_session=True)
        self.processes.append(process)
        return process

    def start_munge(self):
        with open(f"{FOLDER}/key", "wb", opener=lambda path, flags: os.open(path, flags, 0o400)) as file:
            file.write(os.urandom(1024))
        munge = f"{FOLDER}/munge"
        self.start("munged", "--foreground", "--force", f"--key-file={FOLDER}/key", f"--socket={munge}/socket",
                   f"--pid-file={munge}/pid", f"--log-file={FOLDER}/log/munged", f"--seed-file={munge}/seed")
        wait_until(lambda: os.path.exists(f"{munge}/socket"), SOON, "munge listens")

    def start_node(self, host):
        os.makedirs(f"{FOLDER}/spool/{host.name}", exist_ok=True)
        host.services.add(self.start(*host.enter(), "slurmd", "-D", "-N", host.name, "-f", CONFIG).pid)

    def is_up(self):
        ended = [process.args for process in self.processes if process.poll() is not None]
        assert not ended, f"ended: {ended}\n{self.logs()}"
        done = self.run("sinfo", "--noheader", "--Node", "--format=%t", check=False)
        return done.returncode == 0 and done.stdout.split() == ["idle"] * len(self.far.all)

    @staticmethod
    def variables():
        return {"SLURM_CONF": CONFIG}

    def run(self, *words, check=True):
        done = subprocess.run(words, env={**os.environ, **self.variables()}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=SOON)
        assert not check or done.returncode == 0, f"{' '.join(words)} exits {done.returncode}: {done.stderr}"
        return done

    def jobs(self, *states):
        """Elements of arrays one by one, as (id, state, node)."""
        done = self.run("squeue", "--noheader", "--array",
                        f"--states={','.join(states) or 'PENDING,RUNNING,COMPLETING'}", "--format=%i|%T|%N")
        return [tuple(line.split("|")) for line in done.stdout.splitlines()]

    @staticmethod
    def logs():
        return "".join(f"---- {name}:\n{read(f'{FOLDER}/log/{name}').decode(errors='replace')[-3000:]}\n"
                       for name in sorted(os.listdir(f"{FOLDER}/log")))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        shutil.rmtree(FOLDER)
