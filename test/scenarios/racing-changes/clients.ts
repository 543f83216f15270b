/**
 * Who changes the branch of a race: pushes, commits and moves over REST, restorations; and who only reads it.
 *
 * Invariants: any answer but those of success, of a lost race and of an outage fails the scenario.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WireTarget } from '../../support/git-wire.ts';
import { readRegister, setRegister } from '../../support/register.ts';
import type { Dice } from '../../support/seeded.ts';
import { anyOf, note, type Race, REGISTER, repeat, type Sent, send, sendUntilKnown, WIDE_NAMES } from './race.ts';

/** So that the search through the history ends soon. Who lost a race tries again without it, or it would never win. */
const PAUSE_MS = 100;

/** A client with its number in the history. */
type Client = (race: Race, client: number, dice: Dice) => Promise<void>;

/** All that take part, in the order of their numbers. */
export const CLIENTS: readonly Client[] = [
  push,
  push,
  writeCommits,
  writeCommits,
  writeCommits,
  moveRefs,
  restore,
  read,
];

async function push(race: Race, client: number, dice: Dice): Promise<void> {
  let seen = race.begun;
  let wasRefused = false;
  for (let number = 0; !race.over(); number += 1) {
    if (wasRefused || dice.chance(0.3)) {
      seen = (await readOnce(race, client, dice)) ?? seen;
      wasRefused = false;
      continue;
    }
    const answered = race.recorder.call(client);
    const answer = await setRegister(targetOf(race, dice), seen, `push ${client} ${number}`);
    if (answer?.kind === 'compare-and-set' && answer.to !== null) {
      if (answer.outcome === 'unknown') race.unanswered.pushes.set(answer.to, answered);
      else answered(answer);
      if (answer.outcome === 'done') {
        race.pushed.add(answer.to);
        race.values.push(answer.to);
        seen = answer.to;
      }
      if (answer.outcome === 'refused') race.refused += 1;
    }
    wasRefused = answer?.kind === 'compare-and-set' && answer.outcome !== 'done';
    await sleep(PAUSE_MS);
  }
}

/** Half of the commits have keys, and half of them take any head. */
async function writeCommits(race: Race, client: number, dice: Dice): Promise<void> {
  let seen = race.begun;
  for (let number = 0; !race.over(); number += 1) {
    const message = `commit ${client} ${number}`;
    const expected = dice.chance(0.5) ? 'any' : seen;
    const changes = [{ action: 'put', path: `file-${client}-${number}`, content: message }];
    const body = { branch: 'register', expected, message, changes };
    const answered = race.recorder.call(client);
    const keyed = dice.chance(0.5);
    const request = { path: 'commits', body, key: message };
    const pick = () => anyOf(race, dice);
    const sent = keyed ? await sendUntilKnown(race, pick, request) : await send(race, pick(), request.path, body);
    if (sent === null) race.unanswered.commits.set(message, answered);
    else if (sent.status === 201) {
      const { event_id: event, before, after } = sent.body;
      assert.ok(typeof event === 'string' && before !== undefined && after !== undefined, JSON.stringify(sent.body));
      answered(note(race, event, { before, after }));
      seen = after;
      if (keyed) {
        race.keyed.push({ ...request, event });
        if (dice.chance(0.5)) await repeat(race, pick, dice.pick(race.keyed));
      }
    } else {
      assert.notEqual(expected, 'any', `refused: ${JSON.stringify(sent.body)}`);
      seen = headOf(race, sent);
      answered({ kind: 'compare-and-set', from: expected, to: message, outcome: 'refused' });
      continue;
    }
    await sleep(PAUSE_MS);
  }
}

/** Moves the branch to what it named before, from the head that was seen. Each move has a key. */
async function moveRefs(race: Race, client: number, dice: Dice): Promise<void> {
  let seen = race.begun;
  for (let number = 0; !race.over(); number += 1) {
    const after = dice.pick(race.values);
    if (after === seen) {
      await sleep(PAUSE_MS);
      seen = (await readOnce(race, client, dice)) ?? seen;
      continue;
    }
    const wide = race.wide ? WIDE_NAMES.map((ref) => ({ ref, expected: 'any', after })) : [];
    const body = { updates: [{ ref: REGISTER, expected: seen, after }, ...wide] };
    const request = { path: 'refs', body, key: `move ${client} ${number}` };
    const answered = race.recorder.call(client);
    const sent = await sendUntilKnown(race, () => anyOf(race, dice), request);
    if (sent.status !== 200) {
      answered({ kind: 'compare-and-set', from: seen, to: request.key, outcome: 'refused' });
      seen = headOf(race, sent);
      continue;
    }
    const event = sent.body.event_id;
    const move = sent.body.updates?.find(({ ref }) => ref === REGISTER);
    assert.ok(typeof event === 'string' && move !== undefined, JSON.stringify(sent.body).slice(0, 1_000));
    answered(note(race, event, move));
    race.keyed.push({ ...request, event });
    seen = after;
    await sleep(PAUSE_MS);
  }
}

/** Restores the branch to what it was right after some change. */
async function restore(race: Race, client: number, dice: Dice): Promise<void> {
  while (!race.over()) {
    await sleep(PAUSE_MS);
    if (race.made.size === 0) continue;
    const target = dice.pick([...race.made.keys()]);
    const answered = race.recorder.call(client);
    const body = { event_id: target, refs: [REGISTER] };
    const sent = await send(race, anyOf(race, dice), 'restore', body);
    if (sent === null) race.unanswered.restorations.push({ target, answered });
    else if (sent.status === 409) race.refused += 1;
    else {
      assert.equal(sent.status, 200, JSON.stringify(sent.body));
      const { event_id: event, updates } = sent.body;
      const [move] = updates ?? [];
      // Without an event the branch is there already.
      if (typeof event === 'string' && move !== undefined) answered(note(race, event, move));
    }
  }
}

async function read(race: Race, client: number, dice: Dice): Promise<void> {
  while (!race.over()) {
    await readOnce(race, client, dice);
    await sleep(PAUSE_MS);
  }
}

/** Returns what the branch names; null if it was not answered. */
async function readOnce(race: Race, client: number, dice: Dice): Promise<string | null> {
  const answered = race.recorder.call(client);
  const answer = await readRegister(targetOf(race, dice), dice.chance(0.5) ? 'git' : 'rest');
  if (answer?.kind !== 'read') return null;
  answered(answer);
  return answer.value;
}

/** Returns the head that a refused change has met. */
function headOf(race: Race, { status, body }: Sent): string {
  assert.deepEqual([status, body.code], [409, 'head-moved'], JSON.stringify(body).slice(0, 1_000));
  race.refused += 1;
  return body.head ?? '';
}

function targetOf(race: Race, dice: Dice): WireTarget {
  const { account, name } = race;
  return { strata: anyOf(race, dice), account, name };
}
