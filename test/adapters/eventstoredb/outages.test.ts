/** What the log says of an outage of EventStoreDB. */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createOutages } from '../../../adapters/eventstoredb/outages.ts';
import { keepLog } from '../../support/log.ts';

const SUBSCRIPTIONS = 16;

function newOutages() {
  const log = keepLog();
  let nowMs = 0;
  const outages = createOutages(log, () => nowMs);
  const allBreak = (client: object | null): void => {
    for (let n = 0; n < SUBSCRIPTIONS; n += 1) outages.broke(client, {}, 'broke');
  };
  const told = () => log.lines.map(({ message }) => message);
  return { outages, allBreak, told, pass: (ms: number) => void (nowMs += ms) };
}

test('a client that is lost is one line, whoever notices it first, until another one is reached and lost', () => {
  for (const isNoticedFirst of [true, false]) {
    const { outages, allBreak, told } = newOutages();
    const [first, second] = [{}, {}];
    if (isNoticedFirst) allBreak(first);
    outages.lost(first, {}, 'lost');
    allBreak(first);
    allBreak(null);
    assert.deepEqual(told(), [isNoticedFirst ? 'broke' : 'lost']);
    outages.reached();
    allBreak(first);
    outages.lost(second, {}, 'lost');
    assert.deepEqual(told().slice(1), ['lost']);
  }
});

test('subscriptions that break again and again are one line, and a loss of their client later is another', () => {
  const { outages, allBreak, told, pass } = newOutages();
  const client = {};
  for (let n = 0; n < 10; n += 1) allBreak(client);
  pass(60_000);
  outages.lost(client, {}, 'lost');
  assert.deepEqual(told(), ['broke', 'lost']);
});

test('no client that can be opened is one line', () => {
  const { allBreak, told } = newOutages();
  allBreak(null);
  allBreak(null);
  assert.deepEqual(told(), ['broke']);
});
