/** What the settings of an environment are refused for. */
import assert from 'node:assert/strict';
import { SettingsError } from '../../apps/server/settings-reader.ts';

/** Returns the message of the refusal; throws if `read` takes the settings, or fails in another way. */
export function faultsIn(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    assert.ok(error instanceof SettingsError);
    return error.message;
  }
  throw new Error('The settings were taken');
}
