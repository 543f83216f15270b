/** The contracts of the delivery store and of policy marks on the in-memory implementations. */
import { createMemoryDeliveryStore, createMemoryPolicyMarks } from '../support/memory/delivery-store.ts';
import { deliveryStoreContract } from './delivery-store.ts';

deliveryStoreContract('memory', async () => ({
  store: createMemoryDeliveryStore(),
  marks: createMemoryPolicyMarks(),
}));
