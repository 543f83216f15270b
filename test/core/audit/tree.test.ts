/**
 * The tree against the test vectors of Certificate Transparency's reference implementation: the eight leaves, the roots
 * and the proofs of `MerkleTree` in certificate-transparency-go (`merkletree/merkle_tree_test.go`), which stand in
 * google/certificate-transparency's C++ tests as well.
 */
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { digest } from '../../../adapters/node/digest.ts';
import {
  consistencyRanges,
  type Growing,
  grow,
  inclusionRanges,
  type LeafRange,
  NO_TREE,
  nodeHash,
  rangeHash,
  subtreesOf,
} from '../../../core/audit/tree.ts';
import { type Hash, parseHash } from '../../../core/ports/account-log.ts';

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
];

/** The leaves are bytes, which no entry is; their hashes are made here. */
const HASHES = LEAVES.map((hex) => parseHash(digest.sha256OfBytes(Buffer.from(`00${hex}`, 'hex'))));

function grown(size: number, completed: (level: number, index: number, hash: Hash) => void = () => {}): Growing {
  return HASHES.slice(0, size).reduce(
    (tree, leaf) => grow(digest, tree, leaf, ({ level, index }, hash) => completed(level, index, hash)),
    NO_TREE,
  );
}

/** Returns the hash of a range from the subtrees that growing the tree completed. */
function hashOf(range: LeafRange): Hash {
  const nodes = new Map<string, Hash>(HASHES.map((hash, index) => [`0 ${index}`, hash]));
  grown(HASHES.length, (level, index, hash) => nodes.set(`${level} ${index}`, hash));
  const hashes = subtreesOf(range).map(({ level, index }) => {
    const hash = nodes.get(`${level} ${index}`);
    assert.ok(hash !== undefined, `${level} ${index} is complete`);
    return hash;
  });
  return rangeHash(digest, hashes);
}

test('roots of the reference implementation, for each size', () => {
  assert.equal(rangeHash(digest, []), 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  for (const [index, root] of ROOTS.entries()) {
    assert.equal(rangeHash(digest, grown(index + 1).hashes), root);
    assert.equal(hashOf({ begin: 0, end: index + 1 }), root);
  }
});

test('inclusion proofs of the reference implementation', () => {
  const proofs: readonly (readonly [index: number, size: number, hashes: readonly string[]])[] = [
    [0, 1, []],
    [
      0,
      8,
      [
        '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
        '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
        '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4',
      ],
    ],
    [
      5,
      8,
      [
        'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
        'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
        'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
      ],
    ],
    [2, 3, ['fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125']],
    [
      1,
      5,
      [
        '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
        '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
        'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
      ],
    ],
  ];
  for (const [index, size, hashes] of proofs) {
    assert.deepEqual(inclusionRanges(index, size).map(hashOf), hashes, `${index} of ${size}`);
  }
});

test('consistency proofs of the reference implementation', () => {
  const proofs: readonly (readonly [from: number, to: number, hashes: readonly string[]])[] = [
    [1, 1, []],
    [
      1,
      8,
      [
        '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
        '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
        '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4',
      ],
    ],
    [
      6,
      8,
      [
        '0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a',
        'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
        'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
      ],
    ],
    [
      2,
      5,
      [
        '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
        'bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b',
      ],
    ],
  ];
  for (const [from, to, hashes] of proofs) {
    assert.deepEqual(consistencyRanges(from, to).map(hashOf), hashes, `${from} to ${to}`);
  }
});

test('a range of a proof is hashed from its complete subtrees, and those get smaller to the right', () => {
  for (let size = 1; size <= 300; size += 1) {
    for (const range of [{ begin: 0, end: size }, ...inclusionRanges(size >> 1, size), ...consistencyRanges(1, size)]) {
      const levels = subtreesOf(range).map(({ level }) => level);
      assert.deepEqual(
        levels,
        levels.toSorted((a, b) => b - a),
      );
      assert.equal(new Set(levels).size, levels.length);
      const leaves = levels.reduce((sum, level) => sum + 2 ** level, 0);
      assert.equal(leaves, range.end - range.begin);
    }
  }
});

test('a proof has at most one hash more than the tree has levels, at any size', () => {
  for (const size of [1_000, 1_000_000, 999_999_999_999]) {
    const levels = Math.ceil(Math.log2(size));
    assert.ok(inclusionRanges(Math.floor(size / 3), size).length <= levels);
    assert.ok(consistencyRanges(Math.floor(size / 3), size).length <= levels + 1);
  }
});

test('two children are hashed after the byte 1', () => {
  const [left, right] = HASHES;
  assert.ok(left !== undefined && right !== undefined);
  assert.equal(nodeHash(digest, left, right), ROOTS[1]);
});
