/** A device login as older versions began it: a stream that begins with the request, and vault records of its own. */
import type { DeviceLoginRequested } from '../../core/device-session/events.ts';
import { deviceSessions } from '../../core/device-session/evolve.ts';
import type { Digest } from '../../core/kernel/digest.ts';
import type { Cause } from '../../core/kernel/envelope.ts';
import { type DeviceSessionId, plusMs } from '../../core/kernel/ids.ts';
import { DEVICE_SESSION_SPAN_MS } from '../../core/kernel/limits.ts';
import type { Vault } from '../../core/ports/vault.ts';
import { type Context, execute } from '../../core/runtime/execute.ts';
import type { DeviceLoginAsked } from '../../core/use-cases/tokens/device-login.ts';
import { vaultOwnerOf } from '../../core/use-cases/tokens/device-login.ts';

export async function requestOlderDeviceLogin(
  context: Context & { readonly digest: Digest; readonly vault: Pick<Vault, 'put'> },
  cause: Cause,
  { hostname, address, userCode, secret }: Omit<DeviceLoginAsked, 'network'>,
): Promise<DeviceSessionId> {
  const id = context.ids.next<DeviceSessionId>();
  const requested: DeviceLoginRequested = {
    type: 'DeviceLoginRequested',
    data: {
      user_code: userCode,
      secret_hash: context.digest.sha256(secret),
      hostname_ref: await context.vault.put(vaultOwnerOf(id), 'hostname', hostname),
      address_ref: await context.vault.put(vaultOwnerOf(id), 'source-address', address),
      expires_at: plusMs(context.clock.now(), DEVICE_SESSION_SPAN_MS),
    },
  };
  await execute(context, deviceSessions, id, { account: null, cause }, (state) => ({
    events: state.status === 'absent' ? [requested] : [],
  }));
  return id;
}
