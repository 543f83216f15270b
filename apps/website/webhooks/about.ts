/** What a delivery tells of, as its payload names it. */
import { isJsonObject, type JsonObject } from '../../../core/kernel/json.ts';
import type { NextTurn } from '../../../core/kernel/turns.ts';
import { shownName } from '../repositories/shown-text.ts';

export interface DeliveryAbout {
  /** With its owner. */
  readonly repository: string;
  readonly ref: string;
}

/** The cast is sound because this service wrote the payload. */
function parsePayload(payload: string): JsonObject {
  return JSON.parse(payload) as JsonObject;
}

/** Returns null for a payload of no repository, such as that of a ping. */
export function aboutOf(payload: string): DeliveryAbout | null {
  const { repository = null, ref = null } = parsePayload(payload);
  const name = isJsonObject(repository) ? (repository['full_name'] ?? null) : null;
  if (typeof name !== 'string' || typeof ref !== 'string') return null;
  return { repository: name, ref: shownName(ref) };
}

/** A payload may have 256 KiB, and a page lists many. */
export async function aboutAll(
  payloads: readonly (string | null)[],
  nextTurn: NextTurn,
): Promise<readonly (DeliveryAbout | null)[]> {
  const all: (DeliveryAbout | null)[] = [];
  for (const payload of payloads) {
    all.push(payload === null ? null : aboutOf(payload));
    await nextTurn();
  }
  return all;
}
