#!/usr/bin/env python3
"""Several hosts on one machine: network namespaces joined by a bridge, with Open MPI across them.

    tests/hosts/hosts.py [-n HOSTS] [--rate 1gbit] [--ranks-per-host K] [--] COMMAND [ARGUMENT]...

Makes the namespaces, runs COMMAND under mpirun with K ranks on each, removes everything again and exits as COMMAND did. `--rate` shapes what each
host sends (tc's token bucket). Where the machine has a processor for every host, each has its own, as separate machines would. Needs root. As a module: `with Hosts(2) as hosts: hosts.popen(command)`.
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile


def missing():
    """Why this machine cannot do it, or None."""
    if os.geteuid() != 0:
        return "it needs root"
    for tool in ("ip", "tc", "mpirun", "unshare", "taskset"):
        if shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None:
            return f"there is no {tool}"
    name = f"convoy{os.getpid()}probe"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode != 0:
        return "it may not make network namespaces"
    subprocess.run(["ip", "netns", "del", name], check=False)
    return None


class Hosts:
    def __init__(self, count, rate=None):
        self.count, self.rate = count, rate
        self.prefix = f"cv{os.getpid() % 100000}"
        self.switch = f"{self.prefix}sw"
        self.made = []
        self.directory = None

    def processors(self, host):
        """The processors of a host, as taskset writes them."""
        usable = sorted(os.sched_getaffinity(0))
        return ",".join(map(str, usable[host::self.count] if len(usable) >= self.count else usable))

    def name(self, host):
        return f"{self.prefix}h{host}"

    @staticmethod
    def address(host):
        return f"10.99.0.{host + 1}"

    @staticmethod
    def run(*command):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {result.stderr.strip()}")

    def add_namespace(self, name):
        self.run("ip", "netns", "add", name)
        self.made.append(name)

    def __enter__(self):
        try:
            self.add_namespace(self.switch)
            self.run("ip", "-n", self.switch, "link", "add", "bridge", "type", "bridge")
            self.run("ip", "-n", self.switch, "link", "set", "bridge", "up")
            for host in range(self.count):
                self.add_host(host)
            self.directory = tempfile.mkdtemp(prefix="convoy-hosts-")
            self.write_agent()
        except Exception:
            self.__exit__(None, None, None)
            raise
        return self

    def add_host(self, host):
        name, port = self.name(host), f"port{host}"
        self.add_namespace(name)
        self.run("ip", "-n", self.switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
        self.run("ip", "-n", self.switch, "link", "set", port, "master", "bridge", "up")
        self.run("ip", "-n", name, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
        self.run("ip", "-n", name, "link", "set", "eth0", "up")
        self.run("ip", "-n", name, "link", "set", "lo", "up")
        # What Linux has unless it is told otherwise, or the nearest that this machine allows: one that paces by timers costs processor time for every packet.
        self.run("ip", "netns", "exec", name, "sh", "-c",
                 "for control in cubic reno; do echo $control > /proc/sys/net/ipv4/tcp_congestion_control && break; done 2> /dev/null; true")
        if self.rate:
            # The queue has room for all that TCP leaves in it: what a shorter one drops at a message's end comes again after 200 ms at the earliest. What waits does so as it would
            # before a network card, in Linux's own kind of queue, which knows priorities.
            self.run("tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", "handle", "1:", "tbf", "rate", self.rate, "burst", "256kb", "limit", "16mb")
            self.run("tc", "-n", name, "qdisc", "add", "dev", "eth0", "parent", "1:1", "handle", "10:", "pfifo_fast")

    def write_agent(self):
        """What mpirun calls instead of ssh: the first argument is the address of a host."""
        self.agent = os.path.join(self.directory, "agent")
        with open(self.agent, "w", encoding="utf-8") as out:
            out.write('#!/bin/sh\nhost=${1##*.}; shift\ncase $host in\n' +
                      "".join(f"{host + 1}) processors={self.processors(host)} ;;\n" for host in range(self.count)) +
                      f'esac\nexec ip netns exec {self.prefix}h$((host - 1)) taskset -c $processors unshare --uts sh -c "hostname node$host; $*"\n')
        os.chmod(self.agent, 0o755)

    def launcher(self, ranks_per_host=1):
        where = ",".join(f"{self.address(h)}:{ranks_per_host}" for h in range(self.count))
        network = "10.99.0.0/24"
        return ["ip", "netns", "exec", self.name(0), "taskset", "-c", self.processors(0), "unshare", "--uts", "sh", "-c", 'hostname node1; exec "$@"', "sh", "mpirun",
                "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(self.count * ranks_per_host), "--host", where, "--mca",
                "plm_rsh_agent", self.agent, "--mca", "oob_tcp_if_include", network, "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", network]

    def popen(self, command, ranks_per_host=1, **options):
        return subprocess.Popen(self.launcher(ranks_per_host) + command, start_new_session=True, **options)

    def set_link(self, host, state):
        self.run("ip", "-n", self.name(host), "link", "set", "eth0", state)

    def processes(self):
        """The processes that still run inside the namespaces."""
        found = []
        for name in self.made:
            result = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False)
            found += [int(pid) for pid in result.stdout.split()]
        return found

    def __exit__(self, *_):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for name in reversed(self.made):
            subprocess.run(["ip", "netns", "del", name], check=False)
        if self.directory:
            shutil.rmtree(self.directory, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--hosts", type=int, default=2, choices=(2, 3, 4))
    parser.add_argument("--rate", help="what each host may send, as tc writes it: 1gbit, 100mbit")
    parser.add_argument("--ranks-per-host", type=int, default=1)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.error("no COMMAND")
    reason = missing()
    if reason:
        sys.exit(f"hosts: cannot make hosts here: {reason}")
    with Hosts(options.hosts, options.rate) as hosts:
        sys.exit(hosts.popen(command, options.ranks_per_host).wait())


if __name__ == "__main__":
    main()
