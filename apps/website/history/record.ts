/**
 * The record of an account: its last signed checkpoint, whether the log continues it, and how to check that offline.
 *
 * Invariants: looking signs nothing. A checkpoint that the log does not continue is shown as what it is, and a layer
 * store that does not answer takes no more than this panel away.
 */
import { base64OfHex } from '../../../core/audit/base64.ts';
import { LayerStoreError } from '../../../core/ports/layer-store.ts';
import type { AccountRecord, KeptCheckpoint } from '../../../core/use-cases/auditing/checkpoints.ts';
import { logFault } from '../../front-door/fault-log.ts';
import type { SiteContext } from '../context.ts';
import { copyBox } from '../layout/copy-box.ts';
import { buttonForm, hiddenField, postForm } from '../layout/forms.ts';
import { type Html, html } from '../layout/html.ts';
import { timeAgo } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { counted } from '../repositories/shown-text.ts';
import type { Filters } from './filters.ts';

/** Returns null if the store of checkpoints does not answer. */
export async function readRecord(context: SiteContext, visit: PersonVisit): Promise<AccountRecord | null> {
  try {
    return await context.checkpoints.recordOf(visit.person.account, visit.position);
  } catch (error) {
    if (!(error instanceof LayerStoreError)) throw error;
    logFault(context, error, { requestId: visit.requestId, operation: '/history', status: 200 });
    return null;
  }
}

export function recordPanel(visit: PersonVisit, record: AccountRecord | null, { filter }: Filters): Html {
  return html`<section class="box record" aria-labelledby="record"><header><h2 id="record">Record</h2>${
    record !== null && statusMark(record)
  }</header><div class="stack tight part">${record === null ? unreachable() : statusOf(visit, record)}${exportForm(
    visit,
    filter,
  )}</div></section>${offline(visit, record)}`;
}

function statusMark({ last }: AccountRecord): Html {
  if (last === null) return html`<span class="end mark">not signed yet</span>`;
  return last.continued
    ? html`<span class="end mark good">consistent</span>`
    : html`<span class="end mark bad">contradicted</span>`;
}

function unreachable(): Html {
  return html`<p class="note bad">The store of checkpoints does not answer now.</p>`;
}

function statusOf(visit: PersonVisit, { head, last }: AccountRecord): Html {
  const sign = buttonForm(
    { action: '/history/checkpoint', csrf: visit.csrf() },
    html`<button class="button">Sign a checkpoint now</button>`,
  );
  if (last === null) {
    return html`<p>The log has ${counted(head.size, 'entry', 'entries')}. None of its heads was signed yet: that happens about once a day, and with every export.</p><div>${sign}</div>`;
  }
  const newer = head.size - last.size;
  const verdict = last.continued
    ? html`<p>The log continues it${newer > 0 ? html`, with ${counted(newer, 'entry', 'entries')} more` : ': nothing was added since'}.</p>`
    : html`<p class="note bad" role="alert">The log has ${counted(head.size, 'entry', 'entries')} and does not continue this checkpoint: it lost or changed events. Nothing is signed until the operator has acted. Keep this note.</p>`;
  return html`<p>The last signed checkpoint:</p>${checkpointFacts(visit, last)}${verdict}${noteText(last)}${last.continued && newer > 0 && html`<div>${sign}</div>`}`;
}

function checkpointFacts(visit: PersonVisit, { size, root, signer, signedAt }: KeptCheckpoint): Html {
  const { name, keyId } = signer;
  return html`<dl class="facts"><dt>Entries</dt><dd>${size.toLocaleString('en-US')}</dd><dt>Root</dt><dd><code>${base64OfHex(
    root,
  )}</code></dd><dt>Signed</dt><dd>${timeAgo(signedAt, visit.now)}</dd><dt>Key</dt><dd><a href="${keysAddress(visit)}"><code>${name}+${keyId}</code></a></dd></dl>`;
}

function noteText({ note }: KeptCheckpoint): Html {
  return html`<details><summary>The signed note, to keep</summary>${copyBox(note, 'the signed note')}</details>`;
}

/** The public keys are of the API's address. */
function keysAddress({ baseUrl }: PersonVisit): string {
  return `${baseUrl}/.well-known/strata-log-keys`;
}

function exportForm(visit: PersonVisit, filter: Filters['filter']): Html {
  const since = filter?.since ?? null;
  const until = filter?.until ?? null;
  const isSlice = since !== null || until !== null;
  const bounds = html`${since !== null && hiddenField('since', since)}${until !== null && hiddenField('until', until)}`;
  return postForm(
    { action: '/history/export', csrf: visit.csrf() },
    html`${bounds}<div class="row"><button class="button main">Export ${isSlice ? 'these times' : 'the log'}</button></div>`,
  );
}

function offline(visit: PersonVisit, record: AccountRecord | null): Html {
  const last = record?.last ?? null;
  const file = exportName(visit.person.username);
  const kept = last === null ? '' : ` --checkpoint ${last.size}.txt`;
  return html`<section class="box offline" aria-labelledby="offline"><header><h2 id="offline">Verify offline</h2></header><div class="stack tight part"><p class="soft">The verifier asks nobody: it checks every entry, the tree and the signature${
    last !== null && html`, and that the log continues a note that you kept as <code>${last.size}.txt</code>`
  }.</p>${copyBox(`curl -o strata-log-keys ${keysAddress(visit)}`, 'the command that fetches the keys')}${copyBox(
    `strata audit verify ${file} --keys strata-log-keys${kept}`,
    'the command that verifies',
  )}<p class="soft"><a href="${keysAddress(visit)}">All keys that have ever signed</a></p></div></section>`;
}

/** The name of the file that an export is saved as. */
export function exportName(username: string): string {
  return `strata-${username}.ndjson`;
}
