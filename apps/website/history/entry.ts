/**
 * The page of one event: what happened, the text that its leaf is the hash of, and the proof that the tree holds it.
 *
 * Invariants: the leaf is the one that the tree grew by, not one of the event that was just read. If the two do not
 * agree, the log was changed, and the page says so.
 */
import { base64OfHex } from '../../../core/audit/base64.ts';
import { entryHash, leafOf } from '../../../core/audit/entry.ts';
import { type EventId, parseUuid } from '../../../core/kernel/ids.ts';
import { canonicalJson, isJsonObject } from '../../../core/kernel/json.ts';
import { cutText } from '../../../core/kernel/text.ts';
import { type AccountRecord, type Proof, proveInclusion } from '../../../core/use-cases/auditing/checkpoints.ts';
import { findEntry } from '../../../core/use-cases/auditing/list-entries.ts';
import type { ReadEntry } from '../../../core/use-cases/auditing/read-entries.ts';
import type { LogNames } from '../../../core/use-cases/reading/names-of-log-entries.ts';
import type { SiteContext } from '../context.ts';
import { redirectTo, type SiteAnswer, showPage } from '../layout/answer.ts';
import { copyBox } from '../layout/copy-box.ts';
import { type Content, type Html, html } from '../layout/html.ts';
import { page } from '../layout/page.ts';
import { notFound } from '../layout/problems.ts';
import { timeAgo } from '../layout/times.ts';
import type { PersonVisit } from '../layout/visit.ts';
import { textBytes } from '../layout/weight.ts';
import { markInvisible } from '../rendering/invisible.ts';
import { counted } from '../repositories/shown-text.ts';
import { historyAddress } from './filters.ts';
import { namesOf } from './list.ts';
import { readRecord } from './record.ts';
import { actorText, addressOf } from './who.ts';
import { mayLeaveObjects, repositoryIdOf, tellEvent } from './words.ts';

export async function showEntry(context: SiteContext, visit: PersonVisit): Promise<SiteAnswer> {
  const wanted = entryAsked(visit.params['entry'] ?? '');
  if (wanted === null) return notFound(visit);
  const { account } = visit.person;
  const read = await findEntry(context, { account, seen: visit.position, entry: wanted });
  if (read === null) return notFound(visit);
  const { sequence } = read.place;
  // One page has one address.
  if (wanted !== sequence) return redirectTo(`/history/${sequence}`);
  const names = await namesOf(context, visit, [read]);
  const record = await readRecord(context, visit);
  const tree = record === null ? null : treeOf(record, sequence);
  const proof =
    tree === null
      ? null
      : await proveInclusion({ ...context, position: visit.position }, account, { sequence, size: tree.size });
  const what = html`<p class="wrap">${tellEvent(read.event, names)}, ${actorText(read.event.actor, names)}.</p>`;
  const isChanged = entryHash(context.digest, read.event) !== read.place.leaf;
  const content = html`<div class="stack middle start"><div class="row"><h1>Event #${sequence}</h1><a class="button end" href="/history">History</a></div>${what}${
    isChanged &&
    html`<p class="note bad" role="alert">This event is not the one that its leaf was made of: the log was changed.</p>`
  }${purgeOffer(visit, read, names)}${factsOf(visit, read)}${entryBox(read)}${openingsBox(read)}${proofBox(read, tree, proof)}</div>`;
  return showPage(page(visit, { title: `Event #${sequence}` }, content));
}

/** Leads from a forced push or a deletion to the purge, where the repository is still there. */
function purgeOffer({ person }: PersonVisit, { event }: ReadEntry, { repositories }: LogNames): Content {
  const id = mayLeaveObjects(event) ? repositoryIdOf(event) : null;
  const name = id === null ? undefined : repositories.get(id);
  if (name === undefined) return null;
  return html`<p class="soft">What a forced push or a deletion left can be fetched by its id until <a href="/${person.username}/${name}/purge">a purge</a> removes it.</p>`;
}

/** A sequence, or the id of an event; null for any other text. */
function entryAsked(text: string): number | EventId | null {
  return /^\d{1,12}$/.test(text) ? Number(text) : parseUuid<EventId>(text);
}

function factsOf(visit: PersonVisit, read: ReadEntry): Html {
  const { event, place } = read;
  const address = addressOf(read);
  const repository = repositoryIdOf(event);
  const facts: readonly (readonly [string, Content])[] = [
    ['When', html`${timeAgo(event.occurredAt, visit.now)}, <code>${event.occurredAt}</code>`],
    ['Type', html`<a href="${historyAddress({ type: event.type })}">${event.type}</a>, version ${event.version}`],
    [
      'By',
      html`<a href="${historyAddress({ by: event.actor.id })}">All by the same</a>: ${event.actor.kind} <code>${event.actor.id}</code>`,
    ],
    ['From', address],
    [
      'Repository',
      repository !== null &&
        html`<a href="${historyAddress({ repository })}">All of the same</a>: <code>${repository}</code>`,
    ],
    ['Stream', html`<code>${event.stream}</code>, revision ${event.revision}`],
    ['Event', html`<code>${event.id}</code>`],
    [
      'Request',
      html`<a href="${historyAddress({ request: event.requestId })}">All of the same</a>: <code>${event.requestId}</code>`,
    ],
    ['Caused by', event.causationId !== null && html`<code>${event.causationId}</code>`],
    ['Log time', place.logTime !== event.occurredAt && html`<code>${place.logTime}</code>`],
  ];
  const shown = facts.filter(([, value]) => value !== null && value !== false);
  return html`<dl class="facts">${shown.map(([label, value]) => html`<dt>${label}</dt><dd>${value}</dd>`)}</dl>`;
}

/** An event may have a megabyte; the export has it whole. */
export const ENTRY_BYTES_MAX = 30_000;

function entryBox({ event, place }: ReadEntry): Html {
  const text = canonicalJson(leafOf(event));
  const shown = shortenedEntry(markInvisible(text));
  return html`<section class="box" aria-labelledby="entry"><header><h2 id="entry">Canonical entry</h2><span class="end soft">RFC 8785</span></header><pre class="payload part" tabindex="0">${shown}</pre></section>${
    shown.length < text.length &&
    html`<p class="soft">The first part of ${counted(text.length, 'character')}: the export has the whole.</p>`
  }<div class="stack tight"><h2>Leaf</h2><p class="soft">The SHA-256 of a zero byte and the text above, in base64.</p>${copyBox(
    base64OfHex(place.leaf),
    'the leaf',
  )}</div>`;
}

export function shortenedEntry(text: string): string {
  let shown = cutText(text, ENTRY_BYTES_MAX);
  while (textBytes(shown) > ENTRY_BYTES_MAX) shown = cutText(shown, Math.floor(shown.length * 0.8));
  return shown;
}

/** The openings that the page of an entry shows, and the length of each; the export has them whole. */
export const OPENINGS_SHOWN_MAX = 20;
export const OPENING_LENGTH_MAX = 300;

export function openingsBox({ line }: Pick<ReadEntry, 'line'>): Content {
  const { openings } = line;
  if (openings === undefined || !isJsonObject(openings)) return null;
  const opened = Object.entries(openings).slice(0, OPENINGS_SHOWN_MAX);
  if (opened.length === 0) return null;
  const rows = opened.map(([ref, opening]) => {
    const value = isJsonObject(opening) ? opening['value'] : null;
    const text = typeof value === 'string' ? value : '';
    return html`<dt><code title="${ref}">${ref.slice(0, 8)}…</code></dt><dd>${cutText(markInvisible(text), OPENING_LENGTH_MAX)}</dd>`;
  });
  return html`<section class="stack tight"><h2>Openings</h2><p class="soft">Personal data stands in the entry as references alone. This is what they stand for, until the account is erased.</p><dl class="facts">${rows}</dl></section>`;
}

interface ProvenTree {
  readonly size: number;
  readonly root: string;
  readonly isSigned: boolean;
}

/** The tree that was signed last, if it has the entry, else the log as it is now. */
function treeOf({ head, last }: AccountRecord, sequence: number): ProvenTree {
  const isSigned = last !== null && last.continued && sequence < last.size;
  return isSigned ? { size: last.size, root: last.root, isSigned } : { ...head, isSigned: false };
}

function proofBox({ place }: ReadEntry, tree: ProvenTree | null, proof: Proof | null): Html {
  if (tree === null || proof === null) {
    return html`<section class="stack tight"><h2>Inclusion proof</h2><p class="note bad">The store of checkpoints does not answer now.</p></section>`;
  }
  const signed = tree.isSigned
    ? 'This tree is the one of the last signed checkpoint.'
    : html`No signed checkpoint has this entry yet. <a href="/history">Sign one on the page of the history</a>, or wait for that of the day.`;
  const hashes = proof.map((hash) => html`<li><code>${hash}</code></li>`);
  return html`<section class="box" aria-labelledby="proof"><header><h2 id="proof">Inclusion proof</h2><span class="end soft">RFC 6962, section 2.1.1</span></header><div class="stack tight part"><p class="soft">${signed}</p><dl class="facts"><dt>Leaf index</dt><dd>${place.sequence}</dd><dt>Tree size</dt><dd>${tree.size}</dd><dt>Root</dt><dd><code>${base64OfHex(
    tree.root,
  )}</code></dd></dl>${
    hashes.length === 0
      ? html`<p>The leaf is the root: the tree has no other.</p>`
      : html`<ol class="hashes">${hashes}</ol>`
  }</div></section>`;
}
