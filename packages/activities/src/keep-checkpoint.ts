import type { Mirror } from '@tutti/git'
import type { ActivityDeps } from './deps.ts'

/**
 * Stores what a checkpoint adds to the one before in the archive.
 *
 * @returns whether all that the commit needs is there: its base is stored by itself, and may still be on its way
 */
export function keepCheckpoint(
  deps: Pick<ActivityDeps, 'crashPoint'>,
  mirror: Mirror,
  checkpoint: { readonly commit: string; readonly onto: string; readonly base: string },
  signal: AbortSignal,
): Promise<boolean> {
  return deps.crashPoint('turn.checkpoint_kept', async () => {
    await mirror.keep(checkpoint, signal)
    return mirror.isKept(checkpoint.base, signal)
  })
}
