"""A stand-in for Amazon EC2, on loopback, that takes nothing on trust.

    with ec2.Ec2(folder) as cloud:
        subprocess.run([shoal, "cluster", "list", "aws:eu-west-1"], env=os.environ | cloud.environment())
        cloud.machines, cloud.bill()

Every request is read by the vendor's own description of the service, which Debian's python3-botocore has: parameters
that it does not know are refused, and signatures are recomputed by botocore.  Answers are written from the same
description and read back by botocore's parser before they are sent.  As in the real service, the same client token
gives the same machine in one zone and another in another zone, another request by it is a mismatch, a machine is
pending before it runs, listings lag, requests are throttled, answers are lost, capacity ends, and a machine that powers
itself off is terminated only if its start asked for that.

Machines are real where `boots` is true: process, network, time and host-name namespaces in which the user data runs, an
uptime of their own, power-off commands, and a metadata service at 169.254.169.254 that knows only IMDSv2."""
import base64
import collections
import ctypes
import datetime
import hashlib
import hmac
import http.server
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import xml.sax.saxutils

try:
    import botocore.auth
    import botocore.awsrequest
    import botocore.credentials
    import botocore.parsers
    import botocore.session
    import botocore.validate
except ImportError:
    print("python3-botocore is not here (./dev deps test): skipped")
    sys.exit(77)

REGION, KEY, SECRET = "eu-west-1", "AKIDFORTESTS", "a-secret-for-tests"
SIGNATURE_LIVES = 300  # seconds
CODES = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
CLONE_NEWNET = 0x40000000


class Refused(Exception):
    def __init__(self, code, message, status=400):
        super().__init__(code)
        self.code, self.message, self.status = code, message, status


class Lost(Exception):
    """The answer does not arrive."""


def now():
    return datetime.datetime.now(datetime.timezone.utc)


# ---- the protocol, by the model --------------------------------------------------------------------------------------


def wire_name(name, shape):
    """What a member is called in a request: its queryName, or its locationName with a capital."""
    given = shape.serialization
    return given.get("queryName") or (given["name"][0].upper() + given["name"][1:] if "name" in given else name)


def read_scalar(shape, name, text):
    try:
        if shape.type_name in ("integer", "long"):
            return int(text)
        if shape.type_name in ("double", "float"):
            return float(text)
        if shape.type_name == "boolean":
            return {"true": True, "false": False}[text]
        if shape.type_name == "timestamp":
            return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except (ValueError, KeyError):
        raise Refused("InvalidParameterValue", f"Value ({text}) for parameter {name} is invalid") from None
    known = getattr(shape, "enum", None)
    if known and shape.name != "InstanceType" and text not in known:  # types are newer than this model
        raise Refused("InvalidParameterValue", f"Value ({text}) for parameter {name} is invalid")
    return text


def read_input(shape, name, form):
    """Takes what belongs to the shape out of the form."""
    if shape.type_name == "structure":
        prefix = name + "." if name else ""
        found = {member: read_input(inner, prefix + wire_name(member, inner), form)
                 for member, inner in shape.members.items()}
        found = {member: value for member, value in found.items() if value is not None}
        return found or (None if name else {})
    if shape.type_name == "list":
        items = []
        while any(key == f"{name}.{len(items) + 1}" or key.startswith(f"{name}.{len(items) + 1}.") for key in form):
            items.append(read_input(shape.member, f"{name}.{len(items) + 1}", form))
        return items or None
    return read_scalar(shape, name, form.pop(name)) if name in form else None


def write_output(shape, value):
    if shape.type_name == "structure":
        unknown = set(value) - set(shape.members)
        assert not unknown, f"the model of {shape.name} has no {unknown}"
        return "".join(f"<{tag}>{write_output(inner, value[member])}</{tag}>"
                       for member, inner in shape.members.items() if value.get(member) is not None
                       for tag in [inner.serialization.get("name", member)])
    if shape.type_name == "list":
        return "".join(f"<item>{write_output(shape.member, item)}</item>" for item in value)
    if shape.type_name == "boolean":
        return "true" if value else "false"
    if shape.type_name == "timestamp":
        return value.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return xml.sax.saxutils.escape(str(value))


def check_signature(handler, body, secret):
    """Signature version 4, with botocore's own steps for all but taking the header apart."""
    header = handler.headers.get("Authorization", "")
    try:
        scheme, rest = header.split(" ", 1)
        fields = dict(field.strip().split("=", 1) for field in rest.split(","))
        identity, _, region, service, last = fields["Credential"].split("/")
        signed = fields["SignedHeaders"].split(";")
        moment = datetime.datetime.strptime(handler.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ")
    except (ValueError, KeyError, TypeError):
        raise Refused("AuthFailure", "AWS was not able to validate the provided access credentials", 401) from None
    if (scheme, service, last) != ("AWS4-HMAC-SHA256", "ec2", "aws4_request") or identity != KEY:
        raise Refused("AuthFailure", "AWS was not able to validate the provided access credentials", 401)
    if region != REGION:
        raise Refused("SignatureDoesNotMatch", "Credential should be scoped to a valid region.", 403)
    assert {"host", "x-amz-date", "content-type"} <= set(signed), signed
    request = botocore.awsrequest.AWSRequest("POST", f"http://{handler.headers['Host']}{handler.path}", data=body)
    request.context["timestamp"] = handler.headers["X-Amz-Date"]
    lines = [f"{name}:{' '.join(handler.headers[name].split())}" for name in signed]
    canonical = "\n".join(["POST", "/", "", *lines, "", ";".join(signed), hashlib.sha256(body).hexdigest()])
    signer = botocore.auth.SigV4Auth(botocore.credentials.Credentials(KEY, secret), service, region)
    if not hmac.compare_digest(signer.signature(signer.string_to_sign(request, canonical), request),
                               fields["Signature"]):
        raise Refused("SignatureDoesNotMatch", "The request signature we calculated does not match the signature you "
                      "provided.", 403)
    if abs((now().replace(tzinfo=None) - moment).total_seconds()) > SIGNATURE_LIVES:
        raise Refused("RequestExpired", "Request has expired.", 400)


# ---- machines --------------------------------------------------------------------------------------------------------


class Machine:
    """One instance; `process` is its init, in namespaces of its own, once it has booted."""

    def __init__(self, cloud, kind, zone, spot, parameters):
        self.cloud, self.kind, self.zone, self.spot = cloud, kind, zone, spot
        self.id = f"i-{random.getrandbits(68):017x}"
        self.price = cloud.prices[kind, zone] if spot else cloud.demand[kind]
        self.tags = [tag for wanted in parameters.get("TagSpecifications", []) if wanted["ResourceType"] == "instance"
                     for tag in wanted["Tags"]]
        self.user_data = base64.b64decode(parameters.get("UserData", ""))
        self.ends_itself = parameters.get("InstanceInitiatedShutdownBehavior", "stop") == "terminate"
        self.asks_for_tokens = parameters.get("MetadataOptions", {}).get("HttpTokens") == "required"
        self.began, self.booted, self.ended, self.reason = time.monotonic(), None, None, None
        self.launched, self.state, self.process = now(), "pending", None
        self.notice, self.metadata = None, None

    def describe(self):
        told = dict(InstanceId=self.id, InstanceType=self.kind, LaunchTime=self.launched, Tags=self.tags,
                    PrivateIpAddress="10.0.0.1", Placement=dict(AvailabilityZone=self.zone),
                    State=dict(Code=CODES[self.state], Name=self.state))
        if self.spot:
            told["InstanceLifecycle"] = "spot"
        if self.reason:
            told["StateReason"] = dict(Code=self.reason, Message=f"{self.reason}: {self.reason}")
            if self.reason.startswith("Client.User"):  # others are told without their moment
                told["StateTransitionReason"] = f"User initiated ({self.ended_at:%Y-%m-%d %H:%M:%S} GMT)"
        return told

    def alive(self):
        return self.state not in ("terminated", "stopped")

    def seconds(self):
        """That are billed."""
        return (self.ended or time.monotonic()) - self.began if self.alive() or self.ended else 0

    def tag(self, key):
        return next((tag["Value"] for tag in self.tags if tag["Key"] == key), None)

    def boot(self):
        """Runs the user data, as the first start of a machine does."""
        folder = os.path.join(self.cloud.folder, self.id)
        os.makedirs(f"{folder}/bin")
        for name in ("poweroff", "shutdown", "halt"):
            with open(f"{folder}/bin/{name}", "w", encoding="ascii") as file:
                # `shutdown -P +5` is not done here; without a time it means now
                file.write(f"#!/bin/sh\nfor word; do case $word in +*) exit 0;; esac; done\necho {self.id} "
                           f">'{self.cloud.buttons}'\nsleep 600\n")
            os.chmod(f"{folder}/bin/{name}", 0o755)
        with open(f"{folder}/user-data", "wb") as file:
            file.write(self.user_data)
        os.chmod(f"{folder}/user-data", 0o755)
        uptime = int(float(open("/proc/uptime", encoding="ascii").read().split()[0]))
        script = ("ip link set lo up; ip addr add 169.254.169.254/32 dev lo; echo up; read go; "
                  # the machine ends with this process, however that ends
                  "exec 5<&0 >/dev/null; trap 'exit 0' TERM; (cat <&5; kill 1) & "
                  f"exec </dev/null 5<&-; hostname {self.id}; mkdir '{folder}/tmp' '{folder}/root'; "
                  "mount -t tmpfs run /run; "
                  f"cd '{folder}/root'; '{folder}/user-data' >'{folder}/log' 2>&1 </dev/null & wait")
        environment = dict(PATH=f"{folder}/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME=f"{folder}/root", LC_ALL="C",
                           TMPDIR=f"{folder}/tmp")
        words = ["unshare", "--net", "--uts", "--mount", "--time", "--boottime", str(-uptime), "--pid", "--fork",
                 "--kill-child", "--mount-proc", "sh", "-c", script]
        self.process = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        start_new_session=True)
        self.process.stdout.readline()
        self.metadata = Metadata(self)
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()
        self.process.stdout.close()

    def inner_pid(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
            return int(file.read().split()[0])

    def end(self, reason, state="terminated"):
        """As the button does it: at once."""
        if not self.alive():
            return
        self.state, self.reason, self.ended, self.ended_at = state, reason, time.monotonic(), now()
        if self.process:
            self.process.kill()  # and with it all in its namespace
            self.process.wait()
        if self.metadata:
            self.metadata.close()

    def interrupt(self, seconds=120):
        """Tells it, as a spot interruption does, that it goes in so many seconds; the caller ends it."""
        moment = now() + datetime.timedelta(seconds=seconds)
        self.notice = json.dumps(dict(action="terminate", time=moment.strftime("%Y-%m-%dT%H:%M:%SZ")))


class Metadata:
    """IMDSv2, on a socket that was made inside the machine's network and is served from outside."""

    def __init__(self, machine):
        outer = self
        self.token = f"token-{random.getrandbits(64):x}"

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, text=""):
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def do_PUT(self):
                good = self.path == "/latest/api/token" and self.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
                self.answer(200, outer.token) if good else self.answer(400)

            def do_GET(self):
                pages = {"/latest/meta-data/instance-id": machine.id, "/latest/meta-data/instance-type": machine.kind,
                         "/latest/meta-data/spot/instance-action": machine.notice}
                if self.headers.get("X-aws-ec2-metadata-token") != outer.token:
                    self.answer(401)
                elif pages.get(self.path) is None:
                    self.answer(404)
                else:
                    self.answer(200, pages[self.path])

        self.server = Server(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self.server.socket.close()
        inside = threading.Thread(target=self.listen_inside, args=(machine.inner_pid(),))
        inside.start()
        inside.join()
        self.server.socket.listen(64)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def listen_inside(self, pid):
        """In a thread of its own, which is in the machine's network from then on."""
        with open(f"/proc/{pid}/ns/net", "rb") as net:
            if ctypes.CDLL(None, use_errno=True).setns(net.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
        self.server.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.server.socket.bind(("169.254.169.254", 80))

    def close(self):
        threading.Thread(target=self.server.shutdown, daemon=True).start()
        self.server.socket.close()


# ---- the service -----------------------------------------------------------------------------------------------------


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that was killed is what tests do."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Ec2:
    def __init__(self, folder, boots=False, seed=1):
        self.folder, self.boots = folder, boots
        self.model = botocore.session.Session().get_service_model("ec2")
        self.lock, self.random = threading.RLock(), random.Random(seed)
        self.zones = [REGION + letter for letter in "abc"]
        self.types = {"c7i.large": (2, 4096, "x86_64"), "c7i.xlarge": (4, 8192, "x86_64"),
                      "c8g.large": (2, 4096, "arm64")}
        self.demand = {"c7i.large": 0.09576, "c7i.xlarge": 0.19152, "c8g.large": 0.08528}
        self.prices = {(kind, zone): round(price * (0.4 + 0.05 * i), 6) for kind, price in self.demand.items()
                       for i, zone in enumerate(self.zones)}
        self.room = collections.defaultdict(lambda: 1000)  # by (type, zone, spot): how many more there can be
        self.quota, self.permitted, self.subnets, self.secret = 1000, True, 3, SECRET
        self.machines, self.tokens, self.requests = {}, {}, collections.Counter()
        self.pending = 0.0  # seconds from the start of a machine until it runs
        self.lag = 0.0  # seconds that listings do not know of a start
        self.lost = self.doubled = self.throttled = 0.0  # the part of requests that this happens to
        self.silent = False  # accepts requests and never answers
        self.page = 1000
        self.clock = 0  # seconds that the service's Date header differs

    def __enter__(self):
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def date_time_string(self, timestamp=None):
                return super().date_time_string((timestamp or time.time()) + service.clock)

            def do_POST(self):
                service.serve(self)

        os.makedirs(self.folder, exist_ok=True)
        self.buttons = os.path.join(self.folder, "buttons")
        os.mkfifo(self.buttons)
        self.over = False
        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        threading.Thread(target=self.watch_buttons, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.server.shutdown()
        self.server.server_close()
        with self.lock:
            for machine in self.machines.values():
                machine.end("Server.InternalError")

    def environment(self):
        address = f"http://127.0.0.1:{self.server.server_address[1]}"
        return dict(AWS_ENDPOINT_URL_EC2=address, AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET,
                    AWS_REGION=REGION, AWS_EC2_METADATA_DISABLED="true")

    def watch_buttons(self):
        """A machine that is powered off is terminated, or stopped if nobody asked for that."""
        while not self.over:
            with open(self.buttons, encoding="ascii") as fifo:  # until all writers have closed it
                for line in fifo:
                    with self.lock:
                        machine = self.machines.get(line.strip())
                        if machine:
                            machine.end("Client.InstanceInitiatedShutdown",
                                        "terminated" if machine.ends_itself else "stopped")

    def alive(self):
        with self.lock:
            return [machine for machine in self.machines.values() if machine.alive()]

    def bill(self):
        """Dollars, with a minute at least for each machine."""
        with self.lock:
            return sum(max(60, machine.seconds()) * machine.price / 3600 for machine in self.machines.values())

    # -- requests

    def serve(self, handler):
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        if self.silent:
            time.sleep(600)
        status, chance = 200, self.random.random()
        try:
            if chance < self.throttled:
                raise Refused("RequestLimitExceeded", "Request limit exceeded.", 503)
            check_signature(handler, body, self.secret)
            text = self.perform(body)
            if self.random.random() < self.doubled:
                text = self.perform(body)
            if self.random.random() < self.lost:
                raise Lost
        except Refused as why:
            status = why.status
            text = (f"<Response><Errors><Error><Code>{why.code}</Code><Message>"
                    f"{xml.sax.saxutils.escape(why.message)}</Message></Error></Errors>"
                    f"<RequestID>00000000-0000-0000-0000-000000000000</RequestID></Response>")
        except Lost:
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        payload = b'<?xml version="1.0" encoding="UTF-8"?>\n' + text.encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "text/xml;charset=UTF-8")
        handler.send_header("Content-Length", str(len(payload)))
        handler.end_headers()
        handler.wfile.write(payload)

    def perform(self, body):
        form = dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True))
        action, version = form.pop("Action", ""), form.pop("Version", "")
        if version != self.model.api_version:
            raise Refused("InvalidParameterValue", f"API version {version} was not found")
        if action not in self.model.operation_names:
            raise Refused("InvalidAction", f"The action {action} is not valid for this web service.")
        operation = self.model.operation_model(action)
        parameters = read_input(operation.input_shape, "", form)
        if form:
            raise Refused("UnknownParameter", f"The parameter {sorted(form)[0]} is not recognized")
        report = botocore.validate.ParamValidator().validate(parameters, operation.input_shape)
        if report.has_errors():
            raise Refused("MissingParameter", report.generate_report())
        with self.lock:
            self.requests[action] += 1
            self.settle()
            found = getattr(self, "do_" + action)(parameters)
        text = (f'<{action}Response xmlns="http://ec2.amazonaws.com/doc/{version}/"><requestId>0</requestId>'
                f"{write_output(operation.output_shape, found)}</{action}Response>")
        botocore.parsers.EC2QueryParser().parse(dict(body=text.encode(), headers={}, status_code=200),
                                                operation.output_shape)
        return text

    def settle(self):
        for machine in self.machines.values():
            if machine.state == "pending" and time.monotonic() - machine.began >= self.pending:
                machine.state, machine.booted = "running", time.monotonic()

    def boot_later(self, machine):
        def run():
            time.sleep(self.pending)
            with self.lock:
                if machine.alive():
                    machine.state, machine.booted = "running", time.monotonic()
                    machine.boot()
        threading.Thread(target=run, daemon=True).start()

    def select(self, parameters):
        """The machines that a description asks for; what was started just now may be missing."""
        chosen = [machine for machine in self.machines.values() if time.monotonic() - machine.began >= self.lag]
        wanted = parameters.get("InstanceIds")
        if wanted:
            missing = [name for name in wanted if name not in [machine.id for machine in chosen]]
            if missing:
                raise Refused("InvalidInstanceID.NotFound", f"The instance ID '{missing[0]}' does not exist")
            chosen = [machine for machine in chosen if machine.id in wanted]
        for test in parameters.get("Filters", []):
            name, values = test["Name"], test["Values"]
            if name == "tag-key":
                chosen = [machine for machine in chosen if any(tag["Key"] in values for tag in machine.tags)]
            elif name.startswith("tag:"):
                chosen = [machine for machine in chosen if machine.tag(name[4:]) in values]
            elif name == "instance-state-name":
                chosen = [machine for machine in chosen if machine.state in values]
            else:
                raise Refused("InvalidParameterValue", f"The filter '{name}' is invalid")
        return chosen

    def cut_page(self, items, parameters):
        start = int(parameters.get("NextToken") or 0)
        size = min(parameters.get("MaxResults", self.page), self.page)
        return items[start:start + size], dict(NextToken=str(start + size)) if start + size < len(items) else {}

    # -- actions

    def do_RunInstances(self, parameters):
        kind, spot = parameters.get("InstanceType", "m1.small"), "InstanceMarketOptions" in parameters
        options = parameters.get("InstanceMarketOptions", {}).get("SpotOptions", {})
        zone = parameters.get("Placement", {}).get("AvailabilityZone") or self.zones[0]
        token = parameters.get("ClientToken")
        same = {name: value for name, value in parameters.items() if name != "ClientToken"}
        if kind not in self.types:
            raise Refused("InvalidParameterValue", f"Invalid value '{kind}' for InstanceType.")
        if zone not in self.zones:
            raise Refused("InvalidParameterValue", f"Invalid availability zone: [{zone}]")
        if not self.permitted:
            raise Refused("UnauthorizedOperation", "You are not authorized to perform this operation.", 403)
        if parameters.get("DryRun"):
            raise Refused("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
        if token and (zone, token) in self.tokens:
            known, reservation, name = self.tokens[zone, token]
            if known != same:
                raise Refused("IdempotentParameterMismatch", "Arguments on this idempotent request are inconsistent "
                              "with arguments used in previous request(s).")
            return dict(ReservationId=reservation, OwnerId="000000000000",
                        Instances=[self.machines[name].describe()])
        if len(self.alive()) >= self.quota:
            code = "MaxSpotInstanceCountExceeded" if spot else "VcpuLimitExceeded"
            raise Refused(code, "You have requested more than your current limit allows.")
        if spot and float(options.get("MaxPrice", 1e9)) < self.prices[kind, zone]:
            raise Refused("SpotMaxPriceTooLow", f"Your Spot request price of {options['MaxPrice']} is lower than the "
                          f"minimum required Spot request fulfillment price of {self.prices[kind, zone]}.")
        if self.room[kind, zone, spot] < parameters["MinCount"]:
            raise Refused("InsufficientInstanceCapacity", "There is no Spot capacity available that matches your "
                          "request.", 500)
        assert parameters["MinCount"] == parameters["MaxCount"] == 1
        self.room[kind, zone, spot] -= 1
        machine = Machine(self, kind, zone, spot, parameters)
        self.machines[machine.id] = machine
        reservation = f"r-{self.random.getrandbits(68):017x}"
        if token:
            self.tokens[zone, token] = same, reservation, machine.id
        if self.boots:
            self.boot_later(machine)
        return dict(ReservationId=reservation, OwnerId="000000000000", Instances=[machine.describe()])

    def do_DescribeInstances(self, parameters):
        chosen, more = self.cut_page(self.select(parameters), parameters)
        return dict(Reservations=[dict(ReservationId="r-0", Instances=[machine.describe()]) for machine in chosen],
                    **more)

    def do_TerminateInstances(self, parameters):
        for name in parameters["InstanceIds"]:
            if name not in self.machines:
                raise Refused("InvalidInstanceID.NotFound", f"The instance ID '{name}' does not exist")
        told = []
        for name in parameters["InstanceIds"]:
            before = self.machines[name].describe()["State"]
            self.machines[name].end("Client.UserInitiatedShutdown")
            told.append(dict(InstanceId=name, PreviousState=before,
                             CurrentState=self.machines[name].describe()["State"]))
        return dict(TerminatingInstances=told)

    def do_DescribeSpotPriceHistory(self, parameters):
        wanted = [value for test in parameters.get("Filters", []) if test["Name"] == "instance-type"
                  for value in test["Values"]]
        told = [dict(AvailabilityZone=zone, InstanceType=kind, ProductDescription="Linux/UNIX",
                     SpotPrice=f"{price:.6f}", Timestamp=now())
                for (kind, zone), price in sorted(self.prices.items())
                if not wanted or any(kind == value or ("*" in value and kind.startswith(value.split("*")[0]))
                                     for value in wanted)]
        chosen, more = self.cut_page(told, parameters)
        return dict(SpotPriceHistory=chosen, **(more or dict(NextToken="")))

    def do_DescribeAvailabilityZones(self, parameters):
        return dict(AvailabilityZones=[dict(ZoneName=zone, RegionName=REGION, State="available")
                                       for zone in self.zones])

    def do_DescribeSubnets(self, parameters):
        return dict(Subnets=[dict(SubnetId=f"subnet-{i}", AvailabilityZone=zone, DefaultForAz=True)
                             for i, zone in enumerate(self.zones[:self.subnets])])

    def do_DescribeInstanceTypes(self, parameters):
        for kind in parameters.get("InstanceTypes", []):
            if kind not in self.types:
                raise Refused("InvalidInstanceType", f"The following supplied instance types do not exist: [{kind}]")
        return dict(InstanceTypes=[dict(InstanceType=kind, VCpuInfo=dict(DefaultVCpus=self.types[kind][0]),
                                        MemoryInfo=dict(SizeInMiB=self.types[kind][1]),
                                        ProcessorInfo=dict(SupportedArchitectures=[self.types[kind][2]]))
                                   for kind in parameters.get("InstanceTypes", self.types)])
