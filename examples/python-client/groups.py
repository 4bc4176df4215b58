"""Manages two groups of three ranks from Python: apply, wait, read logs, scale, delete, and handle a failure."""

from lwsctl.client import Client, Container, LogOptions, Manifest, WaitTimeoutError

SAYS = "echo rank $LWS_WORKER_INDEX of $LWS_GROUP_SIZE; exec sleep 600"


def main() -> None:
    worker = Container(image="busybox", command=["sh", "-c", SAYS])
    with Client() as cluster:
        cluster.apply(Manifest(name="hello", worker=worker, groups=2, size=3))
        view = cluster.wait("hello", timeout=60)
        print("ready groups:", view.ready)
        for line in cluster.logs("hello", LogOptions(group=0)):
            print(f"{line.pod}: {line.text}")
        print(
            "says:",
            cluster.exec("hello/1/2", ["sh", "-c", "cat; echo $LWS_WORKER_INDEX"], stdin=b"rank ").stdout.strip(),
        )
        cluster.scale("hello", 1)
        cluster.wait("hello", "replicas=1", timeout=60)

        cluster.apply(Manifest(name="broken", worker=Container(image="busybox", command=["no-such-program"])))
        try:
            cluster.wait("broken", timeout=3)
        except WaitTimeoutError as error:
            print("broken is not ready:", error.missing)
        print(cluster.explain("broken"))
        print("events of hello/0/0:", [event.reason for event in cluster.events("hello/0/0")])
        for name in ("hello", "broken"):
            cluster.delete(name)
        print("left:", cluster.names())


if __name__ == "__main__":
    main()
