import { sameState, type PathState } from './path-state.ts'

/** What is known of one path: in the agent's workspace, in the folder, and what both had when they last agreed. */
export interface PathViews {
  readonly remote: PathState
  readonly local: PathState
  readonly base: PathState
}

export type Decision =
  /** Nothing to do. */
  | 'none'
  /** Both have become the same: an echo, or the same work done twice. */
  | 'agree'
  /** The agent has changed it, and the folder has what was agreed on. */
  | 'take'
  /** The user has changed it. */
  | 'send'
  /** Both have: the user's counts (seed 003), and the agent's stays in its history. */
  | 'win'

/** By content alone: when something was changed, or by whom, plays no part in it. */
export function decide({ remote, local, base }: PathViews): Decision {
  if (sameState(remote, local)) return sameState(remote, base) ? 'none' : 'agree'
  if (sameState(local, base)) return 'take'
  return sameState(remote, base) ? 'send' : 'win'
}
