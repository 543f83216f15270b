/** Patterns of trust rules. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { conditionsRefusals, matches, mismatchOf } from '../../../../core/account/trust-rules/conditions.ts';
import type { JsonObject, JsonValue } from '../../../../core/kernel/json.ts';
import {
  TRUST_RULE_CLAIM_NAME_LENGTH_MAX,
  TRUST_RULE_CLAIMS_MAX,
  TRUST_RULE_PATTERN_LENGTH_MAX,
  TRUST_RULE_WILDCARDS_MAX,
} from '../../../../core/kernel/limits.ts';

const presented = (claims: JsonObject) => ({ claims, inexact: new Set<string>() });

describe('A pattern', () => {
  test('matches the same text, and with wildcards any characters of a segment', () => {
    for (const [pattern, text] of [
      ['repo:acme/site', 'repo:acme/site'],
      ['repo:acme/*', 'repo:acme/site'],
      ['repo:*/site:ref:refs/heads/release-*', 'repo:acme/site:ref:refs/heads/release-1.2'],
      ['a*b*c', 'a1b2c'],
      ['a*b*c', 'abbcc'],
      ['*', 'x'],
      ['**', 'xy'],
      ['a*', 'ab'],
      ['a*', 'a\u{1f600}'],
      ['*a*a*', 'xaxax'],
      ['*a*', 'aaa'],
      ['*aa*', 'aaaa'],
      ['https://ci.example/job/*/', 'https://ci.example/job/site/'],
    ] as const) {
      assert.ok(matches(pattern, text), `${pattern} ${text}`);
    }
  });

  test('matches no other text', () => {
    for (const [pattern, text] of [
      ['repo:acme/site', 'repo:acme/Site'],
      ['repo:acme/*', 'repo:acme-evil/x'],
      ['repo:acme/*', 'repo:acme/x/y'],
      ['repo:acme/*', 'repo:acme/x:y'],
      ['repo:acme/*', 'repo:acme:x'],
      ['repo:acme*', 'repo:acme/x'],
      ['*', 'a/b'],
      ['*', 'a:b'],
      ['a*a', 'a'],
      ['ab*bc', 'abc'],
      ['a*b*c', 'acb'],
      ['a*bb*bc', 'abbc'],
      ['a.c', 'abc'],
      ['', 'x'],
    ] as const) {
      assert.ok(!matches(pattern, text), `${pattern} ${text}`);
    }
  });

  // The attack: a subject that ends where the name of a repository should stand, or that shows on two lines.
  test('matches nothing where a wildcard finds no character, and no control character', () => {
    for (const [pattern, text] of [
      ['*', ''],
      ['repo:acme/*', 'repo:acme/'],
      ['repo:*/site', 'repo:/site'],
      ['a*', 'a'],
      ['*a', 'a'],
      ['**', 'x'],
      ['a**', 'ab'],
      ['a*b', 'ab'],
      ['*a*a*', 'aa'],
      ['*a*', 'aa'],
      ['a*b*c', 'abbc'],
      ['repo:acme/*', 'repo:acme/site\n'],
      ['repo:acme/*', 'repo:acme/si\nte'],
      ['repo:acme/*', 'repo:acme/\u0000'],
      ['repo:acme/*', 'repo:acme/\u007f'],
      ['repo:acme/*', 'repo:acme/\u0085'],
      ['repo:*/site', 'repo:acme/site\r'],
    ] as const) {
      assert.ok(!matches(pattern, text), JSON.stringify([pattern, text]));
    }
  });

  // The attack: a pattern for which a matcher that goes back takes hours.
  test('is compared in no time, whatever the text', () => {
    const begun = performance.now();
    const pattern = 'a*'.repeat(TRUST_RULE_WILDCARDS_MAX);
    for (let n = 0; n < 100; n += 1) assert.ok(!matches(`${pattern}b`, 'a'.repeat(12_000)));
    assert.ok(performance.now() - begun < 1_000);
  });
});

describe('Conditions', () => {
  const claims = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`claim-${n}`, 'x']));

  test('are taken at their limits, and refused one past them', () => {
    const long = 'x'.repeat(TRUST_RULE_PATTERN_LENGTH_MAX);
    const name = 'n'.repeat(TRUST_RULE_CLAIM_NAME_LENGTH_MAX);
    const wild = '*'.repeat(TRUST_RULE_WILDCARDS_MAX);
    assert.deepEqual(conditionsRefusals({ subject: long, claims: { [name]: wild } }), []);
    assert.deepEqual(conditionsRefusals({ subject: wild, claims: claims(TRUST_RULE_CLAIMS_MAX) }), []);
    for (const subject of ['', `${long}x`, `${wild}*`, 'a\nb', '\ud800']) {
      const refused = conditionsRefusals({ subject, claims: {} });
      assert.deepEqual(refused, [{ code: 'trust-rule-subject-form' }], JSON.stringify(subject));
    }
    for (const wrong of [
      claims(TRUST_RULE_CLAIMS_MAX + 1),
      { [`${name}n`]: 'x' },
      { '': 'x' },
      { ref: '' },
      { ref: `${long}x` },
      { ref: `${wild}*` },
      ...['iss', 'aud', 'sub', 'exp', 'nbf', 'iat', 'jti'].map((judged) => ({ [judged]: 'x' })),
    ]) {
      const refused = conditionsRefusals({ subject: 'x', claims: wrong });
      assert.deepEqual(refused, [{ code: 'trust-rule-claims-form' }], JSON.stringify(wrong).slice(0, 100));
    }
    const both = conditionsRefusals({ subject: '', claims: { ref: '' } }).map(({ code }) => code);
    assert.deepEqual(both, ['trust-rule-subject-form', 'trust-rule-claims-form']);
  });

  test('name the first claim that does not match, and what was there', () => {
    const conditions = { subject: 'job', claims: { ref: 'main', run: '1' } };
    assert.equal(mismatchOf(conditions, presented({ sub: 'job', ref: 'main', run: 1, other: {} })), null);
    const mismatch = (token: JsonObject) => {
      const found = mismatchOf(conditions, presented(token));
      return [found?.claim, found?.expected, found?.presented];
    };
    assert.deepEqual(mismatch({ sub: 'x', ref: 'x' }), ['sub', 'job', 'x']);
    assert.deepEqual(mismatch({ sub: 'job' }), ['ref', 'main', null]);
    assert.deepEqual(mismatch({ sub: 'job', ref: 'main', run: ['1'] }), ['run', '1', null]);
    // A claim that every object has from its prototype is no claim of the token.
    const inherited = mismatchOf({ subject: 'job', claims: { constructor: '*' } }, presented({ sub: 'job' }));
    assert.equal(inherited?.presented, null);
  });

  test('are met by numbers up to 2^53 that were not rounded, whatever the pattern, and by texts of any length', () => {
    const meets = (run: JsonValue, expected: string, inexact: readonly string[] = []) => {
      const token = { claims: { sub: 'job', run }, inexact: new Set(inexact) };
      return mismatchOf({ subject: 'job', claims: { run: expected } }, token) === null;
    };
    for (const number of [0, 5, -5, 0.5, 2 ** 53 - 1, 1 - 2 ** 53])
      assert.ok(meets(number, String(number)), `${number}`);
    for (const number of [2 ** 53, -(2 ** 53), 2 ** 60, 1e21, 1e308, Number.POSITIVE_INFINITY]) {
      assert.ok(!meets(number, String(number)) && !meets(number, '*'), String(number));
    }
    assert.ok(!meets(5, '5', ['run']) && !meets(5, '*', ['run']) && meets(5, '5', ['other']));
    assert.ok(
      meets('112010400000000710080', '112010400000000710080') && !meets('9007199254740993', '9007199254740992'),
    );
  });
});
