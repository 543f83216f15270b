/**
 * The verifier's forms against the examples of their specifications:
 * - canonical JSON: RFC 8785, sections 3.2.2 to 3.2.4 and appendix B;
 * - trees and proofs: the vectors of Certificate Transparency's reference implementation, in
 *   github.com/transparency-dev/merkle, proof/verify_test.go;
 * - signed notes: the example of golang.org/x/mod/sumdb/note, in note_test.go.
 */
import assert from 'node:assert/strict';
import { createHash, createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import { describe, test } from 'vitest';
import { canonicalText, DEPTH_MAX, parseJson } from '../../../apps/verifier/canonical.ts';
import { parseKey, parseKeys, parseNote, signingOf } from '../../../apps/verifier/checkpoint.ts';
import {
  base64Of,
  EMPTY_ROOT,
  emptyRange,
  hashOfBase64,
  isConsistent,
  isIncluded,
  leafHash,
  nodeHash,
  type Range,
  rangeOf,
  rootOf,
  withLeaf,
  withRange,
} from '../../../apps/verifier/tree.ts';
import { consistencyRanges, inclusionRanges, subtreesOf } from '../../../core/audit/tree.ts';

const bytes = (hex: string) => Buffer.from(hex, 'hex').toString('binary');

describe('canonical JSON', () => {
  test('writes the example of RFC 8785, section 3.2.2, as section 3.2.4 has it', () => {
    const text = String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`;
    const octets = `
      7b 22 6c 69 74 65 72 61 6c 73 22 3a 5b 6e 75 6c 6c 2c 74 72 75 65 2c 66 61 6c 73 65 5d 2c 22 6e 75 6d 62 65 72 73
      22 3a 5b 33 33 33 33 33 33 33 33 33 2e 33 33 33 33 33 33 33 2c 31 65 2b 33 30 2c 34 2e 35 2c 30 2e 30 30 32 2c 31
      65 2d 32 37 5d 2c 22 73 74 72 69 6e 67 22 3a 22 e2 82 ac 24 5c 75 30 30 30 66 5c 6e 41 27 42 5c 22 5c 5c 5c 5c 5c
      22 2f 22 7d`.replaceAll(/\s/g, '');
    assert.equal(Buffer.from(canonicalText(parseJson(text))).toString('hex'), octets);
  });

  test('sorts names as section 3.2.3 does: by UTF-16 code units', () => {
    const text = String.raw`{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh",
      "1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`;
    const sorted = ['Carriage Return', 'One', 'Control', 'Latin Small Letter O With Diaeresis', 'Euro Sign'];
    const values = [...canonicalText(parseJson(text)).matchAll(/:"([^"]*)"/g)].map(([, value]) => value);
    assert.deepEqual(values, [...sorted, 'Emoji: Grinning Face', 'Hebrew Letter Dalet With Dagesh']);
  });

  test('writes numbers as appendix B does', () => {
    const samples: readonly (readonly [ieee: string, text: string])[] = [
      ['0000000000000000', '0'],
      ['8000000000000000', '0'],
      ['0000000000000001', '5e-324'],
      ['7fefffffffffffff', '1.7976931348623157e+308'],
      ['4340000000000000', '9007199254740992'],
      ['44b52d02c7e14af5', '9.999999999999997e+22'],
      ['3eb0c6f7a0b5ed8d', '0.000001'],
      ['41b3de4355555557', '333333333.33333343'],
    ];
    for (const [ieee, text] of samples) assert.equal(canonicalText(Buffer.from(ieee, 'hex').readDoubleBE()), text);
  });

  test('refuses what has no canonical text', () => {
    for (const text of [String.raw`"\ud83d"`, String.raw`"\\\ude00"`, '1e400', '['.repeat(200) + ']'.repeat(200)]) {
      assert.throws(() => canonicalText(parseJson(text)), SyntaxError, text);
    }
    assert.equal(canonicalText(parseJson(String.raw`"\\ud83d"`)), String.raw`"\\ud83d"`);
    const deep = (depth: number) => parseJson(`${'['.repeat(depth)}${']'.repeat(depth)}`);
    assert.equal(canonicalText(deep(DEPTH_MAX + 1)).length, 2 * (DEPTH_MAX + 1));
    assert.throws(() => canonicalText(deep(DEPTH_MAX + 2)), SyntaxError);
  });
});

describe('trees', () => {
  const LEAVES = ['', '00', '10', '2021', '3031', '40414243', '5051525354555657', '606162636465666768696a6b6c6d6e6f'];
  const ROOTS = [
    '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
    'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
    'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
    'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
    '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
    'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
    '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
  ].map(bytes);
  const [A, B, C] = [
    '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
    '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
    '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4',
  ];
  const [D, E, F] = [
    'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
    'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
    '0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a',
  ];
  const G = 'b08693ec2e721597130641e8211e7eedccb4c26413963eee6c1e2ed16ffb1a5f';
  const root = (size: number) => ROOTS[size - 1] ?? EMPTY_ROOT;
  const leaves = LEAVES.map((hex) =>
    createHash('sha256')
      .update(Buffer.from(`00${hex}`, 'hex'))
      .digest('binary'),
  );
  const range = (begin: number, end: number): Range =>
    leaves.slice(begin, end).reduce((grown, leaf) => withLeaf(grown, leaf), emptyRange(begin));

  test('have the roots of the reference implementation', () => {
    assert.equal(EMPTY_ROOT, bytes('e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'));
    assert.equal(leafHash(''), root(1));
    for (let size = 0; size <= 8; size += 1) assert.equal(rootOf(range(0, size)), root(size), `of ${size}`);
  });

  test('are the same whichever ranges they are put together from', () => {
    for (let from = 0; from <= 8; from += 1) {
      for (let to = from; to <= 8; to += 1) {
        const hashes = (begin: number, end: number) => {
          const parts = subtreesOf({ begin, end });
          return parts.map(({ level, index }) => rootOf(aligned(level, index)));
        };
        const [left, right] = [rangeOf(0, from, hashes(0, from)), rangeOf(to, 8, hashes(to, 8))];
        assert.ok(left !== null && right !== null);
        assert.equal(rootOf(withRange(withRange(left, range(from, to)), right)), root(8));
      }
    }
    assert.equal(rangeOf(0, 8, []), null);
    assert.equal(rangeOf(0, 4, [root(4), root(4)]), null);
  });

  /** The leaves of a subtree as a tree of their own. */
  function aligned(level: number, index: number): Range {
    const own = leaves.slice(index * 2 ** level, (index + 1) * 2 ** level);
    return own.reduce((grown, leaf) => withLeaf(grown, leaf), emptyRange(0));
  }

  test('prove that a leaf is in them, by the proofs of the reference implementation and no others', () => {
    const proofs: readonly (readonly [leaf: number, size: number, hashes: readonly (string | undefined)[]])[] = [
      [0, 8, [A, B, C]],
      [5, 8, [D, E, 'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7']],
      [2, 3, ['fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125']],
      [1, 5, ['6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d', B, D]],
    ];
    for (const [index, size, hashes] of proofs) {
      const proof = hashes.map((hex) => bytes(hex ?? ''));
      const leaf = { index, hash: leaves[index] ?? '' };
      assert.ok(isIncluded(leaf, { size, root: root(size) }, proof));
      for (const wrong of corrupted(proof)) assert.ok(!isIncluded(leaf, { size, root: root(size) }, wrong));
      assert.ok(!isIncluded({ ...leaf, index: index ^ 2 }, { size, root: root(size) }, proof));
      assert.ok(!isIncluded(leaf, { size, root: EMPTY_ROOT }, proof));
      assert.ok(!isIncluded({ ...leaf, index: size }, { size, root: root(size) }, proof));
    }
  });

  test('prove that one continues another, by the proofs of the reference implementation and no others', () => {
    const proofs: readonly (readonly [from: number, to: number, hashes: readonly (string | undefined)[]])[] = [
      [1, 8, [A, B, C]],
      [6, 8, [F, E, 'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7']],
      [2, 5, [B, D]],
      [6, 7, [F, G, 'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7']],
    ];
    for (const [from, to, hashes] of proofs) {
      const proof = hashes.map((hex) => bytes(hex ?? ''));
      const [older, newer] = [
        { size: from, root: root(from) },
        { size: to, root: root(to) },
      ];
      assert.ok(isConsistent(older, newer, proof), `${from} to ${to}`);
      for (const wrong of corrupted(proof)) assert.ok(!isConsistent(older, newer, wrong), `${from} to ${to}`);
      assert.ok(!isConsistent({ ...older, root: newer.root }, { ...newer, root: older.root }, proof));
      assert.ok(!isConsistent({ ...older, size: from + 1 }, newer, proof));
      assert.ok(!isConsistent(newer, older, proof));
    }
    const one = { size: 1, root: root(1) };
    assert.ok(isConsistent(one, one, []) && !isConsistent(one, one, [root(1)]));
    assert.ok(!isConsistent(one, { size: 1, root: root(2) }, []));
    assert.ok(isConsistent({ size: 0, root: EMPTY_ROOT }, one, []));
  });

  test('prove it by the proofs that the service makes', () => {
    const hashOf = (begin: number, end: number) =>
      rootOf(
        subtreesOf({ begin, end }).reduce(
          (grown, { level, index }) => withRange(grown, at(level, index)),
          emptyRange(begin),
        ),
      );
    const at = (level: number, index: number): Range => range(index * 2 ** level, (index + 1) * 2 ** level);
    for (let to = 1; to <= 8; to += 1) {
      for (let index = 0; index < to; index += 1) {
        const proof = inclusionRanges(index, to).map(({ begin, end }) => hashOf(begin, end));
        assert.ok(isIncluded({ index, hash: leaves[index] ?? '' }, { size: to, root: root(to) }, proof));
      }
      for (let from = 1; from <= to; from += 1) {
        const proof = consistencyRanges(from, to).map(({ begin, end }) => hashOf(begin, end));
        assert.ok(isConsistent({ size: from, root: root(from) }, { size: to, root: root(to) }, proof), `${from} ${to}`);
      }
    }
  });

  function corrupted(proof: readonly string[]): readonly (readonly string[])[] {
    const flipped = proof.map((_, index) => proof.map((hash, at) => (at === index ? nodeHash(hash, hash) : hash)));
    return [...flipped, proof.slice(1), proof.slice(0, -1), [...proof, root(1)], [root(1), ...proof]];
  }

  test('are written in base64 of one form only', () => {
    const text = base64Of(root(8));
    assert.equal(hashOfBase64(text), root(8));
    // The last digit before the padding has two bits that mean nothing.
    const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
    const last = digits.indexOf(text.charAt(42));
    for (const other of [1, 2, 3].map((bits) => `${text.slice(0, 42)}${digits.charAt(last ^ bits)}=`)) {
      assert.equal(hashOfBase64(other), null);
    }
    for (const other of ['', text.slice(0, -1), `${text}=`, ` ${text}`]) assert.equal(hashOfBase64(other), null);
  });
});

describe('signed notes', () => {
  const KEY = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
  const OTHER = 'EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop';
  const TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
  const SIGNATURE =
    '— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n';
  const OTHERS =
    '— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n';
  const keys = parseKeys(`${KEY}\n`);
  const signers = (note: string, known = keys) => {
    const parsed = parseNote(note);
    if (parsed === null) return 'no note';
    const signing = signingOf(parsed, known);
    return signing.state === 'signed' ? signing.signers : `${signing.state}: ${signing.why}`;
  };
  const isWrong = (note: string): void => {
    const found = signers(note);
    assert.ok(typeof found === 'string');
    assert.match(found, /^wrong: the signature .* is wrong/);
  };

  test('are verified by the example key, whoever else signed', () => {
    assert.equal(parseNote(`${TEXT}\n${SIGNATURE}`)?.text, TEXT);
    assert.deepEqual(signers(`${TEXT}\n${SIGNATURE}`), keys);
    assert.deepEqual(signers(`${TEXT}\n${SIGNATURE}${OTHERS}`), keys);
    assert.deepEqual(signers(`${TEXT}\n${SIGNATURE}${OTHERS}`, parseKeys(`${KEY}\n${OTHER}\n`)).length, 2);
    assert.equal(signers(`${TEXT}\n${OTHERS}`), 'unknown: none of the given keys signed it');
    isWrong(`${TEXT.replace('answer', 'Answer')}\n${SIGNATURE}`);
  });

  test('are made by the example key as the example has them', () => {
    const seed = Buffer.from('AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz', 'base64').subarray(1);
    const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]);
    const made = sign(null, Buffer.from(TEXT), createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }));
    const signature = Buffer.concat([Buffer.from('c74f20a3', 'hex'), made]).toString('base64');
    assert.equal(`— PeterNeumann ${signature}\n`, SIGNATURE);
  });

  test('are refused when they are malformed', () => {
    const malformed = [
      TEXT,
      `${TEXT}\n`,
      `${TEXT}\n${SIGNATURE.slice(0, -1)}`,
      `\u0001${TEXT}\n${SIGNATURE}`,
      `${TEXT}\n${SIGNATURE.replace('PeterNeumann', 'Bad Name')}`,
      `${TEXT}\n${SIGNATURE}Unexpected line.\n`,
      `${TEXT}\n${SIGNATURE.repeat(101)}`,
    ];
    for (const note of malformed) assert.equal(parseNote(note), null, note);
    assert.notEqual(parseNote(`${TEXT}\n${SIGNATURE.repeat(100)}`), null);
  });

  test('take no key with any part missing or any character changed', () => {
    for (let begin = 0; begin <= KEY.length; begin += 1) {
      for (let end = begin; end <= KEY.length; end += 1) {
        if (end - begin < KEY.length) assert.equal(parseKey(KEY.slice(begin, end)), null);
      }
    }
    for (let at = 0; at < KEY.length; at += 1) {
      const changed = KEY.slice(0, at) + String.fromCharCode(KEY.charCodeAt(at) + 1) + KEY.slice(at + 1);
      assert.equal(parseKey(changed), null, changed);
    }
    assert.equal(parseKey('PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY=='), null);
    const line = 'PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW';
    assert.deepEqual(parseKey(line), { line, name: 'PeterNeumann', hash: '173116ae', key: null }, 'another algorithm');
    assert.throws(() => parseKeys(`${KEY}\nnothing\n`), /line 2/);
  });

  test('of another key with the same name are not taken for one of the key', () => {
    const { privateKey } = generateKeyPairSync('ed25519');
    const forged = Buffer.concat([Buffer.from('c74f20a3', 'hex'), sign(null, Buffer.from(TEXT), privateKey)]);
    isWrong(`${TEXT}\n— PeterNeumann ${forged.toString('base64')}\n`);
  });
});
