/**
 * The rooms of the top-level folders, lowest first. A room may import from its own files and from rooms listed before
 * it, never from one listed after it (docs/architecture.md, Shape).
 *
 * Invariants: every source below the listed folders belongs to exactly one room, so that a new folder needs a place
 * in this list. The order holds for imports of types as well.
 */
import { importedModules } from './dependency-rule.ts';
import { modulesOf, type SourceTree } from './source-tree.ts';

/** Each room is a folder, or a file that is a room of its own. The longest match decides. */
export const ROOM_ORDERS: { readonly [folder: string]: readonly string[] } = {
  core: [
    'core/platform.d.ts',
    'core/kernel',
    'core/git',
    'core/git/wire',
    'core/git/history',
    'core/git/diff',
    'core/access-token',
    'core/account',
    'core/claim',
    'core/repository',
    'core/device-session',
    'core/webhook-delivery',
    'core/sign-in',
    'core/bucket-errors',
    'core/ports',
    'core/runtime',
    'core/usage',
    'core/catalogue.ts',
    'core/audit',
    'core/use-cases/callers',
    'core/use-cases/accounts',
    'core/use-cases/repositories',
    'core/use-cases/tokens',
    'core/use-cases/signing-in',
    'core/use-cases/erasing',
    'core/use-cases/metering',
    'core/use-cases/buckets',
    'core/use-cases/reading',
    'core/use-cases/pushing',
    'core/use-cases/webhooks',
    'core/use-cases/log-files',
    'core/use-cases/compacting',
    'core/use-cases/manifests',
    'core/use-cases/sweeping',
    'core/use-cases/issuing',
    'core/use-cases/as-of',
    'core/use-cases/undo',
    'core/use-cases/auditing',
    'core/use-cases/verifying',
  ],
  'adapters/git': [
    'adapters/git/process',
    'adapters/git/packs',
    'adapters/git/layers',
    'adapters/git/cache',
    'adapters/git/answers',
    'adapters/git/receiving',
    'adapters/git/compacting',
    'adapters/git',
  ],
  apps: [
    'apps/launcher',
    'apps/verifier',
    'apps/replay',
    'apps/cli/client',
    'apps/cli/terminal',
    'apps/cli/settings',
    'apps/cli/session',
    'apps/cli/commands',
    'apps/cli/definitions',
    'apps/cli',
    'apps/front-door',
    'apps/front-door/texts',
    'apps/git-http',
    'apps/api',
    'apps/website/rendering',
    // What the context gives to the documentation.
    'apps/website/docs/open-api.ts',
    'apps/website/context.ts',
    'apps/website/assets',
    'apps/website/layout',
    'apps/website/sessions',
    'apps/website/identity',
    'apps/website/mfa',
    'apps/website/docs',
    'apps/website/tokens',
    'apps/website/repositories',
    'apps/website/webhooks',
    'apps/website/buckets',
    'apps/website/trust',
    'apps/website/history',
    'apps/website/usage',
    'apps/website',
    'apps/server',
    'apps/admin',
  ],
};

function roomOf(path: string, rooms: readonly string[]): string | null {
  const holding = rooms.filter((room) => path === room || path.startsWith(`${room}/`));
  return holding.toSorted((a, b) => b.length - a.length)[0] ?? null;
}

/** Returns one line for each import from a later room, and for each source that belongs to no room. */
export function roomOrderViolations(tree: SourceTree): string[] {
  const violations: string[] = [];
  for (const [folder, rooms] of Object.entries(ROOM_ORDERS)) {
    const inside = [...modulesOf(tree).keys()].filter((path) => path.startsWith(`${folder}/`));
    for (const path of inside) {
      const room = roomOf(path, rooms);
      if (room === null) violations.push(`${path} belongs to no room of ${folder}`);
      for (const target of room === null ? [] : importedModules(tree, path)) {
        const other = roomOf(target, rooms);
        if (other === null || rooms.indexOf(other) <= rooms.indexOf(room ?? '')) continue;
        violations.push(`${path} may not import ${target}: ${other} comes after ${room}`);
      }
    }
  }
  return violations;
}
