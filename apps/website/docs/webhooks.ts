/**
 * How a receiver of webhooks knows that a delivery is from here.
 *
 * Invariants: the programs shown are the files of `samples/`, which the tests run against real deliveries.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import {
  WEBHOOK_ATTEMPT_SPAN_MS,
  WEBHOOK_ATTEMPTS_MAX,
  WEBHOOK_PAYLOAD_BYTES_MAX,
  WEBHOOK_PAYLOAD_COMMITS_MAX,
  WEBHOOK_RETRY_WAITS_MS,
  WEBHOOKS_MAX,
} from '../../../core/kernel/limits.ts';
import type { SiteAnswer } from '../layout/answer.ts';
import { html } from '../layout/html.ts';
import type { Visit } from '../layout/visit.ts';
import { commands, DOCS, program, showDocs } from './frame.ts';

/** Read at the start, before the server listens. */
const PROGRAMS = ['receive-webhook.mjs', 'receive_webhook.py'].map((name) => ({
  name,
  text: readFileSync(path.join(import.meta.dirname, 'samples', name), 'utf8'),
}));

const WAITS = WEBHOOK_RETRY_WAITS_MS.map((ms) => ms / 1_000).join(', ');

export function webhooks(visit: Visit): SiteAnswer {
  const content = html`<p>A webhook is an address of yours that gets a signed POST whenever a branch or tag is created, pushed or deleted. <a href="/webhooks">Create one</a> on the website or over the <a href="${DOCS}/api/webhooks">API</a>; an account has at most ${WEBHOOKS_MAX}. Its secret is shown once.</p>
<h2>What is sent</h2>
<div class="box scroll"><table><thead><tr><th scope="col">Header</th><th scope="col">Holds</th></tr></thead><tbody>
<tr><td><code>X-Service-Event</code></td><td><code>push</code>, <code>create</code>, <code>delete</code> or <code>ping</code></td></tr>
<tr><td><code>X-Service-Event-Id</code></td><td>what happened; the same for every webhook</td></tr>
<tr><td><code>X-Service-Delivery</code></td><td>this delivery; the same in every attempt, so that you can tell a repetition</td></tr>
<tr><td><code>X-Service-Signature</code></td><td>HMAC-SHA256 of the body under the webhook's secret, in hex</td></tr>
<tr><td><code>X-Service-Signature-Previous</code></td><td>the same under the secret before, for a day after it was changed</td></tr>
</tbody></table></div>
<p>The body is JSON of at most ${WEBHOOK_PAYLOAD_BYTES_MAX / 1024} KiB: the ref with its old and new id, the repository, and the newest ${WEBHOOK_PAYLOAD_COMMITS_MAX} commits that no ref reached before.</p>
<h2>Check the signature</h2>
<p>Anybody can send a POST to your address. What proves that it came from here is the signature: compute it over the bytes of the body as they arrived, and compare the two in constant time. These are whole receivers; the tests of this service run them as they stand here.</p>
${PROGRAMS.map(({ name, text }) => program(name, text))}
<p>To see whether yours agrees, sign something by hand:</p>
${commands('Sign a body by hand', `printf '%s' '{"type":"ping"}' | openssl dgst -sha256 -hmac "$WEBHOOK_SECRET"`)}
<h2>Answers and repetitions</h2>
<p>Answer with any 2xx within ${WEBHOOK_ATTEMPT_SPAN_MS / 1_000} seconds. The status and its headers decide; what becomes of the body behind them does not. Everything else is a failure, redirects too, and the delivery is sent again ${WAITS} seconds after the attempt before: ${WEBHOOK_ATTEMPTS_MAX} attempts in all, with the same bytes. First attempts for one repository are made in the order of its pushes, repetitions when they are due. What is beyond your plan's deliveries of an hour waits for a later hour, and says so in the list. A delivery can arrive twice: keep the <code>X-Service-Delivery</code> that you have seen.</p>
<p>The page of each webhook lists its deliveries with every attempt, what you answered, and a button to send it again.</p>`;
  return showDocs(visit, { title: 'Webhooks', path: `${DOCS}/webhooks`, head: 'Webhooks' }, content);
}
