import type { BlobId } from '@tutti/core'

/** What is at a path, or that nothing is: `hash` of a file's content or a link's target; a folder is one with nothing in it. */
export type PathState =
  | { readonly mode: '100644' | '100755' | '120000'; readonly hash: BlobId }
  | { readonly mode: '040000' }
  | undefined

export const sameState = (left: PathState, right: PathState): boolean =>
  left?.mode === right?.mode && hashOf(left) === hashOf(right)

export const hashOf = (state: PathState): BlobId | undefined =>
  state && 'hash' in state ? state.hash : undefined
