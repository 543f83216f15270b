/**
 * Starts the sides that a run compares.
 *
 * Invariants: the subject is first; `end` ends every server started here, also when another one fails to start.
 */
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import type { BenchOptions } from '../options.ts';
import { createProcessGroup, type ProcessGroup } from '../processes.ts';
import type { Project } from '../project.ts';
import type { Scenario } from '../scenarios/scenario.ts';
import { DEFAULT_VARIANT, type HttpBackend, type HttpBackendPrograms, startHttpBackend } from './http-backend.ts';
import type { Side, SideContext } from './side.ts';
import { startStrata } from './strata.ts';

/** Long enough to close the embedded PostgreSQL cleanly. */
const PRODUCT_GRACE_MS = 20_000;
/** fcgiwrap leaves its children behind when it ends, so a longer wait would not help. */
const PEER_GRACE_MS = 300;

export interface StartedSides {
  /** One side for each server. */
  readonly servers: readonly Side[];
  /** Returns the sides that a scenario compares, the subject first; empty when no side can take part. */
  sidesFor(scenario: Scenario): readonly Side[];
  end(): Promise<void>;
}

/**
 * Starts the servers.
 * @param programs null only when http-backend does not take part.
 */
export async function startSides(
  options: BenchOptions,
  project: Project,
  workFolder: string,
  programs: HttpBackendPrograms | null,
): Promise<StartedSides> {
  const servers: Side[] = [];
  const groups: ProcessGroup[] = [];
  const contextOf = async (name: string, graceMs: number): Promise<SideContext> => {
    const folder = path.join(workFolder, name);
    await mkdir(folder);
    const group = createProcessGroup(name, graceMs);
    groups.push(group);
    return { project, folder, group };
  };
  const end = async (): Promise<void> => {
    for (const group of groups.splice(0)) await group.end();
  };
  let peer: HttpBackend | null = null;
  try {
    if (options.selfCheck && programs !== null) {
      const again = await startHttpBackend(programs, await contextOf('again', PEER_GRACE_MS));
      servers.push(again.sideOf({ ...DEFAULT_VARIANT, label: 'http-backend again' }));
    } else if (options.sides !== 'http-backend')
      servers.push(await startStrata(await contextOf('strata', PRODUCT_GRACE_MS)));
    if (programs !== null && options.sides !== 'strata') {
      peer = await startHttpBackend(programs, await contextOf('http-backend', PEER_GRACE_MS));
      servers.push(peer.sideOf(DEFAULT_VARIANT));
    }
  } catch (error) {
    await end();
    throw error;
  }
  return {
    servers,
    sidesFor(scenario) {
      const able = scenario.kind === 'rest' ? servers.filter(({ rest }) => rest !== null) : servers;
      if (options.selfCheck || scenario.kind === 'rest' || peer === null) return able;
      const { sideOf } = peer;
      return [...able, ...(scenario.variants ?? []).map((variant) => sideOf(variant))];
    },
    end,
  };
}
