# A receiver of webhooks in Python, with nothing installed: python3 receive_webhook.py
import hashlib
import hmac
import json
import os
from http.server import BaseHTTPRequestHandler, HTTPServer

SECRET = os.environ["WEBHOOK_SECRET"].encode()
SEEN = set()


def is_signed(body, signature):
    # The signature is over the bytes of the body as they arrived.
    expected = hmac.new(SECRET, body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, signature or "")


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        # For a day after its secret was changed, a webhook is signed with the old one too.
        names = ("X-Service-Signature", "X-Service-Signature-Previous")
        if not any(is_signed(body, self.headers.get(name)) for name in names):
            self.send_response(401)
            self.end_headers()
            return
        self.send_response(204)
        self.end_headers()
        # A delivery that is sent again keeps its id.
        delivery = self.headers.get("X-Service-Delivery")
        if delivery in SEEN:
            return
        SEEN.add(delivery)
        event = json.loads(body)
        print(event["type"], event.get("repository", {}).get("full_name", ""), event.get("ref", ""), flush=True)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3000"))), Receiver)
print("listening on", server.server_port, flush=True)
server.serve_forever()
