/** The steps of a device login's request. */
import { type DeviceSessionId, uuid } from '../../core/kernel/ids.ts';
import type { DeviceLoginRequests, DeviceRequestStep } from '../../core/ports/device-login-requests.ts';
import type { StepActions } from '../../core/ports/workflows.ts';
import { removalOf } from './logic.ts';

export function createDeviceRequestSteps({
  deviceRequests,
}: {
  readonly deviceRequests: Pick<DeviceLoginRequests, 'find' | 'forgetDevice' | 'remove'>;
}): StepActions<DeviceRequestStep> {
  return {
    'forget-device': async ({ id }) => {
      const request = await deviceRequests.find(uuid<DeviceSessionId>(id));
      if (request !== null) await deviceRequests.forgetDevice(request.id, removalOf(request));
    },
    remove: ({ id }) => deviceRequests.remove(uuid<DeviceSessionId>(id)),
  };
}
