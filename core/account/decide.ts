/** Decides the commands of the account itself. `<facet>/decide.ts` decides those of a facet. */
import { accept, type Decision, refuse } from '../kernel/decider.ts';
import type { AccountCommand } from './commands.ts';
import type { AccountOwnEvent } from './events.ts';
import { type Account, sessionEpochOf } from './state.ts';

export function decideAccount(state: Account, command: AccountCommand): Decision<AccountOwnEvent> {
  switch (command.type) {
    case 'CreateAccount':
      // The stream is abandoned if the claim lapsed before this command: another account may hold the name now.
      if (state.status !== 'absent') return refuse({ code: 'username-taken', username: command.username });
      return accept<AccountOwnEvent>({
        type: 'AccountCreated',
        data: {
          username: command.username,
          email_ref: command.emailRef,
          password_hash_ref: command.passwordHashRef,
          plan: command.plan,
        },
      });
    case 'AbandonAccount':
      return state.status === 'absent'
        ? accept<AccountOwnEvent>({ type: 'Abandoned', data: {} })
        : accept<AccountOwnEvent>();
    case 'ChangePlan':
      if (state.status !== 'open') return refuse({ code: 'account-not-found' });
      return command.plan === state.plan
        ? accept<AccountOwnEvent>()
        : accept<AccountOwnEvent>({ type: 'PlanChanged', data: { plan: command.plan } });
    case 'ChangePassword':
      if (state.status !== 'open') return refuse({ code: 'account-not-found' });
      return accept<AccountOwnEvent>({ type: 'PasswordChanged', data: { password_hash_ref: command.passwordHashRef } });
    case 'ChangeEmail':
      if (state.status !== 'open') return refuse({ code: 'account-not-found' });
      return accept<AccountOwnEvent>({
        type: 'EmailChanged',
        data: { email_ref: command.emailRef, previous_claim: command.previousClaim },
      });
    case 'CloseAccount':
      if (state.status !== 'open') return refuse({ code: 'account-not-found' });
      return accept<AccountOwnEvent>({ type: 'AccountClosed', data: { erase_at: command.eraseAt } });
    case 'ReopenAccount':
      // From `eraseAt` on, any node may have begun to erase it.
      if (state.status !== 'closed' || sessionEpochOf(state) !== command.epoch || command.now >= state.eraseAt) {
        return refuse({ code: 'session-no-longer-valid' });
      }
      return accept<AccountOwnEvent>({ type: 'AccountReopened', data: {} });
    case 'RecordMasterKeyRotation':
      // An erased account has no data key.
      if (state.status !== 'open' && state.status !== 'closed') return refuse({ code: 'account-not-found' });
      return accept<AccountOwnEvent>({ type: 'MasterKeyRotated', data: { key_id: command.keyId } });
    case 'EndorseLogKey':
    case 'AcceptTailLoss':
    case 'RecordRebuild':
      // The log of an account that was erased is signed as well, and a manifest may name such an account.
      if (state.status === 'absent' || state.status === 'abandoned') return refuse({ code: 'account-not-found' });
      return accept(recordOf(command));
    case 'EraseDueAccount': {
      const isDue = state.status === 'closed' && command.now >= state.eraseAt;
      if (state.status !== 'erased' && !isDue) return refuse({ code: 'account-not-found' });
      return decideAccount(state, { type: 'EraseAccount' });
    }
    case 'EraseAccount':
      // Idempotent: an erasure that stopped after this event is repeated to finish its other steps.
      if (state.status === 'erased') return accept<AccountOwnEvent>();
      if (state.status !== 'open' && state.status !== 'closed') return refuse({ code: 'account-not-found' });
      return accept<AccountOwnEvent>({ type: 'AccountErased', data: {} });
  }
}

type RecordCommand = Extract<AccountCommand, { readonly type: 'EndorseLogKey' | 'AcceptTailLoss' | 'RecordRebuild' }>;

/** What the operator did that stands in the log of the account. */
function recordOf(command: RecordCommand): AccountOwnEvent {
  switch (command.type) {
    case 'EndorseLogKey': {
      const { key, previous, signature } = command;
      return { type: 'LogKeyEndorsed', data: { key, previous, signature } };
    }
    case 'AcceptTailLoss': {
      const { size, root, reason } = command;
      return { type: 'LogTailLost', data: { size, root, reason } };
    }
    case 'RecordRebuild': {
      const data = { repository_id: command.repository, source_repository_id: command.source };
      return { type: 'RepositoryRebuilt', data };
    }
  }
}
