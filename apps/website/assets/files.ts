/**
 * The stylesheet, the scripts and the mark, each served under a URL that holds a digest of its content.
 *
 * Invariants: a URL's content never changes, so browsers may keep it permanently. Only the files listed here are
 * served, and they are read once at the start.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const TYPES = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
} as const;

const NAMES = [
  'site.css',
  'mark.svg',
  'page.js',
  'diff.js',
  'editor.js',
  'go-to-file.js',
  'lines.js',
  'moments.js',
  'new-repository.js',
  'ref-picker.js',
  'webauthn.js',
  'passkeys.js',
] as const;
type AssetName = (typeof NAMES)[number];
export type ScriptName = Extract<AssetName, `${string}.js`>;

export interface Asset {
  readonly path: string;
  readonly type: string;
  readonly bytes: Buffer;
}

/**
 * Files of packages that are served as they are. The bundle of @simplewebauthn/browser is a UMD one: as a module it
 * sets `globalThis.SimpleWebAuthnBrowser`, which passkeys.js reads.
 */
const OF_PACKAGES: Readonly<Partial<Record<AssetName, string>>> = {
  'webauthn.js': fileURLToPath(
    new URL('../dist/bundle/index.umd.min.js', import.meta.resolve('@simplewebauthn/browser')),
  ),
};

/** Reads at the start, before the server listens. */
function readAsset(name: AssetName): Asset {
  const folder = path.join(import.meta.dirname, name.endsWith('.js') ? 'scripts' : '.');
  const bytes = readFileSync(OF_PACKAGES[name] ?? path.join(folder, name));
  const digest = createHash('sha256').update(bytes).digest('base64url').slice(0, 16);
  const [stem = '', extension = ''] = name.split('.');
  return { path: `/assets/${stem}.${digest}.${extension}`, type: typeOf(extension), bytes };
}

function typeOf(extension: string): string {
  const type = Object.entries(TYPES).find(([known]) => known === extension)?.[1];
  if (type === undefined) throw new TypeError(`No type for .${extension}`);
  return type;
}

const ASSETS: ReadonlyMap<AssetName, Asset> = new Map(NAMES.map((name) => [name, readAsset(name)]));

/** Every asset, by the path that it is served under. */
export const ASSETS_BY_PATH: ReadonlyMap<string, Asset> = new Map(
  [...ASSETS.values()].map((asset) => [asset.path, asset]),
);

/** Returns the path of an asset's current content. */
export function assetPath(name: AssetName): string {
  const asset = ASSETS.get(name);
  if (asset === undefined) throw new TypeError(`No asset ${name}`);
  return asset.path;
}
