// A receiver of webhooks in Node, with nothing installed: node receive-webhook.mjs
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const secret = process.env.WEBHOOK_SECRET ?? '';
const port = Number(process.env.PORT ?? 3000);
const seen = new Set();

// The signature is over the bytes of the body as they arrived: never over JSON that was parsed and written again.
function isSigned(body, signature) {
  const expected = createHmac('sha256', secret).update(body).digest();
  const sent = Buffer.from(signature ?? '', 'hex');
  return sent.length === expected.length && timingSafeEqual(sent, expected);
}

createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const { headers } = request;
  // For a day after its secret was changed, a webhook is signed with the old one too.
  const signatures = [headers['x-service-signature'], headers['x-service-signature-previous']];
  if (!signatures.some((signature) => isSigned(body, signature))) {
    response.writeHead(401).end();
    return;
  }
  // Answer first and work later: an answer that takes 30 seconds counts as a failure.
  response.writeHead(204).end();
  // A delivery that is sent again keeps its id.
  if (seen.has(headers['x-service-delivery'])) return;
  seen.add(headers['x-service-delivery']);
  const event = JSON.parse(body);
  console.log(event.type, event.repository?.full_name ?? '', event.ref ?? '');
}).listen(port, '127.0.0.1', () => console.log(`listening on ${port}`));
