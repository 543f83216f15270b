/**
 * Where the pack of a quarantine is: in a folder of its own, or in memory until git needs its files.
 *
 * Invariants: no file is left behind after `end`, which waits for what is being written.
 */
import { join } from 'node:path';
import { writePackFiles } from '../cache/held-packs.ts';
import type { IncomingFolders } from '../cache/incoming-folders.ts';
import type { PackBytes } from '../packs/joined-pack.ts';
import type { PackPlace } from '../packs/object-source.ts';

export class QuarantineFiles {
  readonly #incoming: IncomingFolders;
  #folder: Promise<string> | null;
  #held: { readonly name: string; readonly bytes: PackBytes } | null = null;

  /** Takes over a folder of incoming files, if there is one already. */
  constructor(incoming: IncomingFolders, folder: string | null = null) {
    this.#incoming = incoming;
    this.#folder = folder === null ? null : Promise.resolve(folder);
  }

  /** The bytes of the pack if they are in memory, whether or not files were written too. */
  get held(): PackBytes | null {
    return this.#held?.bytes ?? null;
  }

  /** Keeps a pack in memory, whose checksum is its name, hex. The folder must not have been used. */
  hold(name: string, bytes: PackBytes): PackPlace {
    this.#held = { name, bytes };
    return { held: () => bytes, packPath: '', idxPath: '' };
  }

  /** Resolves with the folder, in which `pack/pack-<hex>.{pack,idx}` are whole, and `.rev` if git wrote them. */
  folder(): Promise<string> {
    this.#folder ??= this.#take();
    return this.#folder;
  }

  async #take(): Promise<string> {
    const folder = await this.#incoming.take();
    try {
      if (this.#held !== null) await writePackFiles(packBaseIn(folder, this.#held.name), this.#held.bytes);
      return folder;
    } catch (error) {
      this.#folder = null;
      await this.#incoming.remove(folder);
      throw error;
    }
  }

  /** Removes the folder; one whose pack was moved away is used again. */
  async end(isMoved = false): Promise<void> {
    const folder = await this.#folder?.catch(() => null);
    if (folder === null || folder === undefined) return;
    if (isMoved) await this.#incoming.giveBack(folder);
    else await this.#incoming.remove(folder);
  }
}

/** The path of a pack's files in a folder of incoming files, without their extension. */
export function packBaseIn(folder: string, name: string): string {
  return join(folder, 'pack', `pack-${name}`);
}
