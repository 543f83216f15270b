/** The contract of the requests of device logins on the in-memory version. */
import { createMemoryDeviceLoginRequests } from '../support/memory/device-login-requests.ts';
import { deviceLoginRequestsContract } from './device-login-requests.ts';

deviceLoginRequestsContract('memory', async () => createMemoryDeviceLoginRequests());
