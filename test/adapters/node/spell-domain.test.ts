/** The two spellings of international domain names, and names that have none. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { spellDomain } from '../../../adapters/node/spell-domain.ts';

describe('An international domain name', () => {
  test('has the same two spellings however it is typed', () => {
    const spellings = { ascii: 'xn--mnchen-3ya.example', unicode: 'münchen.example' };
    for (const typed of [
      'münchen.example',
      'MÜNCHEN.example',
      'mu\u0308nchen.example',
      'ｍünchen。example',
      'mün\u00adchen.example',
      'xn--mnchen-3ya.example',
      'XN--MNCHEN-3YA.EXAMPLE',
    ]) {
      assert.deepEqual(spellDomain(typed), spellings, typed);
    }
  });

  test('keeps letters apart that only an older mapping made equal', () => {
    assert.deepEqual(spellDomain('straße.de'), { ascii: 'xn--strae-oqa.de', unicode: 'straße.de' });
    assert.deepEqual(spellDomain('βόλος.com'), { ascii: 'xn--nxasmm1c.com', unicode: 'βόλος.com' });
  });

  test('is plain ASCII if its letters are only forms of those', () => {
    assert.deepEqual(spellDomain('ｅｘａｍｐｌｅ.org'), { ascii: 'example.org', unicode: 'example.org' });
  });
});

describe('No domain has a name', () => {
  for (const [fault, names] of [
    ['that maps to nothing, or has a label that does', ['', '\u00ad', '\u00ad.example', 'ü..example', 'ü.']],
    ['whose ASCII is no spelling of any', ['xn--a', 'xn--.example', 'xn--zzzzzzz9999.example', 'xn--example-.org']],
    ['whose ASCII stands for letters that are written otherwise', ['xn--i-lfa.example', 'XN--SS-FA.xn--\u00fc']],
    ['with a label longer than 63 characters in ASCII', [`${'ü'.repeat(70)}.example`]],
    ['of which a URL would keep only a part', ['ü/b', 'ü#b', 'ü?b', 'ü\\b', 'ü:80', 'a@ü', 'ex%C3%BCa', 'mün\tchen']],
    ['with the syntax of a URL in wide letters', ['ü／b', 'ü％41', 'ü＠b']],
    ['that is an address', ['１２７.1', '０ｘ７ｆ.1', '[ü]']],
    ['with signs or blanks', ["ü'.example", 'ü+.example', 'ü .example', 'a\u200db.example']],
  ] as const) {
    test(fault, () => {
      for (const name of names) assert.equal(spellDomain(name), null, JSON.stringify(name));
    });
  }
});
