// refused: typescript(switch-exhaustiveness-check)
type State = { status: 'open' } | { status: 'closed'; at: string };

export function closedAt(state: State): string | null {
  switch (state.status) {
    case 'closed':
      return state.at;
  }
  return null;
}
