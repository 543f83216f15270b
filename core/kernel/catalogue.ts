/**
 * Every event the service can write: by category and type, its versions and whether it is part of the record.
 *
 * Must stay true: names and stored bytes are for ever. A type is changed by a new version with an upcaster, and
 * a golden JSON of each version stays in test/golden.
 */
import { accessTokenEventKinds } from '../access-token/events.ts';
import { accountEventKinds } from '../account/events.ts';
import { claimEventKinds } from '../claim/events.ts';
import { deviceSessionEventKinds } from '../device-session/events.ts';
import { refUpdatesEventKinds, repositoryEventKinds } from '../repository/events.ts';
import { transferEventKinds } from '../transfer/events.ts';
import { webhookDeliveryEventKinds } from '../webhook-delivery/events.ts';
import type { EventKind } from './decider.ts';

export const EVENT_CATALOGUE: { readonly [category: string]: { readonly [type: string]: EventKind } } = {
  account: accountEventKinds,
  accessToken: accessTokenEventKinds,
  deviceSession: deviceSessionEventKinds,
  email: claimEventKinds,
  refUpdates: refUpdatesEventKinds,
  repository: repositoryEventKinds,
  transfer: transferEventKinds,
  username: claimEventKinds,
  webhookDelivery: webhookDeliveryEventKinds,
};
