"""A mail server for a test: STARTTLS with the certificate of argv[1], its key in argv[2], AUTH wanted. Prints its port; each mail goes to the folder argv[3]."""
import os
import ssl
import sys

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult


class Keep:
    count = 0

    async def handle_DATA(self, server, session, envelope):
        Keep.count += 1
        path = os.path.join(sys.argv[3], "%d.eml" % Keep.count)
        with open(path + "~", "wb") as f:
            f.write(("To: %s\n" % ",".join(envelope.rcpt_tos)).encode() + envelope.original_content)
        os.rename(path + "~", path)
        return "250 kept"


def check(server, session, envelope, mechanism, data):
    return AuthResult(success=data.login == b"corpus" and data.password == b"T0KEN-of-the-sink", handled=False)


context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain(sys.argv[1], sys.argv[2])


class Ephemeral(Controller):
    def _trigger_server(self):
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


c = Ephemeral(Keep(), hostname="127.0.0.1", port=0, tls_context=context, require_starttls=True, auth_required=True, authenticator=check)
c.start()
print(c.port, flush=True)
sys.stdin.read()
c.stop()
