/** Parts of pages about the account, each up to its limit. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { uuids } from '../../../adapters/node/ids.ts';
import {
  ENTRY_BYTES_MAX,
  OPENING_LENGTH_MAX,
  OPENINGS_SHOWN_MAX,
  openingsBox,
  shortenedEntry,
} from '../../../apps/website/history/entry.ts';
import {
  actorChoice,
  TEXT_LENGTH_MAX,
  TOKENS_BYTES_MAX,
  TOKENS_OFFERED_MAX,
  textsAsked,
} from '../../../apps/website/history/filters.ts';
import { ROWS_BYTES_MAX, rowsOfPage } from '../../../apps/website/history/list.ts';
import { ADDRESSES_NAMED_MAX, useRow } from '../../../apps/website/history/token-activity.ts';
import { REFS_NAMED_MAX, tellEvent } from '../../../apps/website/history/words.ts';
import { type Content, html } from '../../../apps/website/layout/html.ts';
import { shortenedText, SHOWN_LENGTH_MAX as TRUST_SHOWN_LENGTH_MAX } from '../../../apps/website/trust/list.ts';
import { aboutOf } from '../../../apps/website/webhooks/about.ts';
import { ATTEMPTS_SHOWN_MAX, attemptLog, bodyText, SHOWN_LENGTH_MAX } from '../../../apps/website/webhooks/delivery.ts';
import { deliveryTable, OPEN_MAX } from '../../../apps/website/webhooks/webhook.ts';
import {
  type EventId,
  type RepositoryId,
  timestamp,
  type WebhookDeliveryId,
  type WebhookId,
} from '../../../core/kernel/ids.ts';
import type { JsonObject } from '../../../core/kernel/json.ts';
import { vaultRef } from '../../../core/kernel/vault-ref.ts';
import { newAccount, newEvent, newStream } from '../../support/events.ts';

const NOW = timestamp('2026-11-21T10:00:00.000Z');
const x = (length: number): string => 'x'.repeat(length);
const list = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n);
const textOf = (content: Content): string => html`${content}`.markup().replaceAll(/<[^>]*>/g, '');
const countOf = (content: Content, what: RegExp): number => html`${content}`.markup().match(what)?.length ?? 0;

describe('The page of an entry', () => {
  test('shows its text whole up to the limit, and a part of it with one byte more', () => {
    assert.equal(shortenedEntry(x(ENTRY_BYTES_MAX)), x(ENTRY_BYTES_MAX));
    assert.ok(shortenedEntry(x(ENTRY_BYTES_MAX + 1)).length <= ENTRY_BYTES_MAX);
    // A quotation mark takes five bytes in a page.
    const quoted = `"${x(ENTRY_BYTES_MAX - 5)}`;
    assert.equal(shortenedEntry(quoted), quoted);
    assert.ok(shortenedEntry(`${quoted}x`).length < ENTRY_BYTES_MAX - 5);
  });

  test('shows as many openings as the limit, each up to its length', () => {
    const boxOf = (count: number, length: number): Content =>
      openingsBox({
        line: { openings: Object.fromEntries(list(count).map((n) => [`ref-${n}`, { value: x(length) }])) },
      });
    for (const count of [OPENINGS_SHOWN_MAX, OPENINGS_SHOWN_MAX + 1]) {
      assert.equal(countOf(boxOf(count, 1), /<dd>/g), OPENINGS_SHOWN_MAX);
    }
    assert.ok(textOf(boxOf(1, OPENING_LENGTH_MAX)).endsWith(x(OPENING_LENGTH_MAX)));
    assert.ok(textOf(boxOf(1, OPENING_LENGTH_MAX + 1)).endsWith(`${x(OPENING_LENGTH_MAX - 1)}…`));
  });
});

describe('The filters of the history', () => {
  test('are read up to the limit of their length', () => {
    for (const length of [TEXT_LENGTH_MAX, TEXT_LENGTH_MAX + 1]) {
      const texts = textsAsked({ url: new URL(`http://localhost/history?type=${x(length)}`) });
      assert.deepEqual(texts, { type: x(TEXT_LENGTH_MAX) });
    }
  });

  test('offer as many tokens as the limits of their number and of their bytes', () => {
    const person = { account: newAccount() };
    const offered = (names: readonly string[]): number => {
      const tokens = names.map((name, at) => ({ id: `id-${String(at).padStart(3, '0')}`, name }));
      // Two options are no tokens.
      return countOf(actorChoice({ person }, tokens, undefined), /<option/g) - 2;
    };
    assert.equal(offered(list(TOKENS_OFFERED_MAX).map(() => 'ci')), TOKENS_OFFERED_MAX);
    assert.equal(offered(list(TOKENS_OFFERED_MAX + 1).map(() => 'ci')), TOKENS_OFFERED_MAX);
    const one = Buffer.byteLength('<option value="id-000">The token </option>');
    // Names of one length, and one of what is left.
    const many = Math.floor(TOKENS_BYTES_MAX / (one + 100));
    const left = TOKENS_BYTES_MAX - (many - 1) * (one + 100) - one;
    const names = (last: number): string[] => [...list(many - 1).map(() => x(100)), x(last)];
    assert.equal(offered(names(left)), many);
    assert.equal(offered(names(left + 1)), many - 1);
  });

  test('leave rows of a bounded weight to a page', () => {
    const rows = [html`${x(ROWS_BYTES_MAX - 1)}`, html`x`];
    assert.equal(rowsOfPage(rows).length, 2);
    assert.equal(rowsOfPage([...rows, html`x`]).length, 2);
  });
});

describe('A row of the history', () => {
  test('shows both names of a repository that was renamed', () => {
    const data = { repository_id: uuids.next<RepositoryId>(), name: 'kit', previous_name: 'tools' };
    const event = { ...newEvent({ type: 'RepositoryRenamed', data }), stream: newStream() };
    const told = textOf(tellEvent(event, { repositories: new Map() }));
    assert.equal(told, 'Renamed the repository tools to kit');
  });

  test('names refs up to the limit, and counts the others', () => {
    const told = (count: number): string => {
      const updates = list(count).map((n) => ({ ref: `refs/heads/b${n}`, kind: 'create' }));
      const event = { ...newEvent({ type: 'RefsUpdated', data: { updates } }), stream: newStream() };
      return textOf(tellEvent(event, { repositories: new Map() }));
    };
    const names = list(REFS_NAMED_MAX)
      .map((n) => `b${n}`)
      .join(', ');
    assert.equal(told(REFS_NAMED_MAX), `Pushed to ${names} of a deleted repository`);
    assert.equal(told(REFS_NAMED_MAX + 1), `Pushed to ${names} and 1 more ref of a deleted repository`);
  });

  test('says by what refs were changed, unless it was git', () => {
    const told = (data: JsonObject): string => {
      const updates = [{ ref: 'refs/heads/main', kind: 'create' }];
      const event = { ...newEvent({ type: 'RefsUpdated', data: { updates, ...data } }), stream: newStream() };
      return textOf(tellEvent(event, { repositories: new Map() }));
    };
    const doors: readonly JsonObject[] = [{}, { door: null }, { door: 'git' }, { door: 'something newer' }];
    for (const data of doors) assert.equal(told(data), 'Pushed to main of a deleted repository');
    assert.equal(told({ door: 'api' }), 'Pushed to main of a deleted repository over the API');
    assert.equal(told({ door: 'admin' }), 'Pushed to main of a deleted repository with strata-admin');
    const restored = { event_id: 'e' };
    assert.equal(told({ door: 'website', restored }), 'Restored main of a deleted repository on the website');
    const parts = { updates: 2 };
    assert.equal(told({ door: 'api', parts, updates: [] }), 'Pushed to 2 refs of a deleted repository over the API');
  });

  test('names addresses up to the limit, and counts the others', () => {
    const from = (count: number): string => {
      const addresses = new Map(
        list(count).map((n) => [vaultRef(String(n).repeat(64)), { nonce: '', value: `192.0.2.${n}` }]),
      );
      const use = { minute: NOW, repositoryId: uuids.next<RepositoryId>(), reads: 0, writes: 1, addresses };
      return textOf(useRow({ now: NOW }, use, { repositories: new Map() })).trim();
    };
    const names = list(ADDRESSES_NAMED_MAX)
      .map((n) => `192.0.2.${n}`)
      .join(', ');
    assert.ok(from(ADDRESSES_NAMED_MAX).endsWith(names));
    assert.ok(from(ADDRESSES_NAMED_MAX + 1).endsWith(`${names} and 1 more`));
  });
});

describe('The page of a delivery', () => {
  test('shows a body whole up to the limit, and says how much of a longer one it shows', () => {
    assert.equal(textOf(bodyText(x(SHOWN_LENGTH_MAX), '')), x(SHOWN_LENGTH_MAX));
    const said = `The first ${SHOWN_LENGTH_MAX} of ${SHOWN_LENGTH_MAX + 1} characters.`;
    assert.equal(textOf(bodyText(x(SHOWN_LENGTH_MAX + 1), '')), `${x(SHOWN_LENGTH_MAX)}${said}`);
  });

  test('shows as many attempts as the limit, the newest, and counts the others', () => {
    const logOf = (count: number) => {
      const attempts = list(count).map((n) => ({
        ...{ series: 1, attempt: n + 1, at: NOW, durationMs: 1, httpStatus: 1_000 + n, error: null, detail: null },
      }));
      return attemptLog({ now: NOW }, attempts);
    };
    const [full, more] = [logOf(ATTEMPTS_SHOWN_MAX), logOf(ATTEMPTS_SHOWN_MAX + 1)];
    assert.deepEqual(
      [full, more].map((log) => countOf(log, /data-label="Outcome"/g)),
      [ATTEMPTS_SHOWN_MAX, ATTEMPTS_SHOWN_MAX],
    );
    assert.match(textOf(full), /1000/);
    assert.doesNotMatch(textOf(full), /The newest/);
    assert.doesNotMatch(textOf(more), /1000/);
    assert.match(textOf(more), new RegExp(`The newest ${ATTEMPTS_SHOWN_MAX} of ${ATTEMPTS_SHOWN_MAX + 1} attempts`));
  });
});

test('The page of a webhook shows the attempts of as many pending deliveries as the limit', () => {
  const delivery = {
    ...({ event: 'push', status: 'PENDING', createdAt: NOW, nextAttemptAt: NOW, deferredUntil: null } as const),
    ...{ id: uuids.next<WebhookDeliveryId>(), eventId: uuids.next<EventId>(), attemptLog: [], about: null },
  };
  const opened = (count: number): number =>
    countOf(
      deliveryTable(
        { now: NOW },
        uuids.next<WebhookId>(),
        list(count).map(() => delivery),
      ),
      /class="?open/g,
    );
  assert.deepEqual([opened(OPEN_MAX), opened(OPEN_MAX + 1)], [OPEN_MAX, OPEN_MAX]);
});

test('The list of trust rules shows a text whole up to the limit, and cuts a longer one', () => {
  const whole = x(TRUST_SHOWN_LENGTH_MAX);
  assert.deepEqual([shortenedText(whole), shortenedText(`${whole}x`)], [whole, `${whole}…`]);
});

test('A delivery is about the repository and the ref of its payload, and a ping about none', () => {
  const payload = { type: 'push', ref: 'refs/heads/main', repository: { full_name: 'ada/engine' } };
  assert.deepEqual(aboutOf(JSON.stringify(payload)), { repository: 'ada/engine', ref: 'refs/heads/main' });
  assert.equal(aboutOf(JSON.stringify({ type: 'ping', owner: { username: 'ada' } })), null);
});
