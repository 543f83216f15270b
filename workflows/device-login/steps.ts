/** The steps of a device login. */
import type { Cause } from '../../core/kernel/envelope.ts';
import { type DeviceSessionId, uuid } from '../../core/kernel/ids.ts';
import type { Vault } from '../../core/ports/vault.ts';
import type { StepActions } from '../../core/ports/workflows.ts';
import type { Context } from '../../core/runtime/execute.ts';
import { systemCause } from '../../core/runtime/system-cause.ts';
import { closeDeviceLogin, expireDeviceLogin } from '../../core/use-cases/tokens/device-login-token.ts';
import { type DeviceLoginStep, deviceLogin } from './logic.ts';

export function createDeviceLoginSteps(
  context: Context & { readonly vault: Pick<Vault, 'eraseAccount'> },
): StepActions<DeviceLoginStep> {
  const newCause = (): Cause => systemCause(context.ids, deviceLogin.name);
  return {
    expire: ({ id }) => expireDeviceLogin(context, newCause(), uuid<DeviceSessionId>(id)),
    close: ({ id }) => closeDeviceLogin(context, newCause(), uuid<DeviceSessionId>(id)),
  };
}
