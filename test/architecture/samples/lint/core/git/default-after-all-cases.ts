// refused: typescript(switch-exhaustiveness-check)
type State = { status: 'open' } | { status: 'closed' };

export function isOpen(state: State): boolean {
  switch (state.status) {
    case 'open':
      return true;
    case 'closed':
      return false;
    default:
      return false;
  }
}
