/**
 * The attack: one account has a valid token and asks for as much as it can, on a thousand concurrent connections:
 * reads, changes, tokens, pushes of refs. No request is malformed, and each is cheap. Before the rates such an account
 * had all of the server's processors to itself, and the log grew by what it wrote.
 */
import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { describe, test } from 'vitest';
import { ACCOUNT_REQUESTS_AT_ONCE_MAX } from '../../../apps/front-door/callers.ts';
import { type Stage, setStage, underAttack } from '../../support/attack.ts';

const SPAN_MS = 20_000;
const CONNECTIONS = 1_000;

interface Answers {
  readonly byStatus: Map<number, number>;
  /** The headers of the last refusal. */
  refused: Readonly<Record<string, unknown>>;
}

describe('An account that asks for as much as it can', () => {
  test('is refused what is beyond its concurrent requests, and others are answered', async (context) => {
    const stage = await setStage(context);
    const answers: Answers = { byStatus: new Map(), refused: {} };
    const figures = await underAttack(
      context,
      stage,
      'rates: reads on 1,000 connections',
      () => hammer(stage, answers, { method: 'GET', path: '/v1/repositories' }),
      { eventsMax: 50 },
    );
    const answered = answers.byStatus.get(200) ?? 0;
    assert.ok(answered > 0);
    assert.ok(
      (answers.byStatus.get(429) ?? 0) > 0,
      `more than ${ACCOUNT_REQUESTS_AT_ONCE_MAX} concurrent requests were let in`,
    );
    assert.deepEqual(new Set(answers.byStatus.keys()), new Set([200, 429]));
    assert.match(String(answers.refused['retry-after']), /^\d+$/);
    assert.ok(figures.answers.p50 >= 0);
  });

  test('cannot write faster than its rate, and keeps what is written out of the way of others', async (context) => {
    const stage = await setStage(context);
    const answers: Answers = { byStatus: new Map(), refused: {} };
    await underAttack(context, stage, 'rates: new tokens on 1,000 connections', () =>
      hammer(stage, answers, {
        method: 'POST',
        path: '/v1/access-tokens',
        body: JSON.stringify({ name: 'x', scope: 'ALL_REPO', grants: ['GIT_HTTP_READ'] }),
      }),
    );
    const made = answers.byStatus.get(201) ?? 0;
    // Those that race overshoot by as many as run at the same time.
    assert.ok(made > 0 && made <= 1_000 + ACCOUNT_REQUESTS_AT_ONCE_MAX, `${made} tokens were made`);
  });
});

interface Shot {
  readonly method: string;
  readonly path: string;
  readonly body?: string;
}

/** Sends the request again and again on every connection, each as soon as the one before was answered. */
async function hammer(stage: Stage, answers: Answers, shot: Shot): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const until = performance.now() + SPAN_MS;
  const one = async (): Promise<void> => {
    while (performance.now() < until) {
      const { status, headers } = await send(stage, agent, shot);
      answers.byStatus.set(status, (answers.byStatus.get(status) ?? 0) + 1);
      if (status === 429) answers.refused = headers;
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, one));
  agent.destroy();
}

function send(
  { strata, attacker }: Stage,
  agent: Agent,
  { method, path, body }: Shot,
): Promise<{ readonly status: number; readonly headers: Readonly<Record<string, unknown>> }> {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${attacker.token}`, 'Content-Type': 'application/json' };
    const sent = request(`${strata.url}${path}`, { agent, method, headers }, (response) => {
      response.resume();
      response.once('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers }));
      response.once('error', reject);
    });
    sent.once('error', reject);
    sent.end(body);
  });
}
