import { TuttiError } from '@tutti/core'

/** What is not there, or not whole; any other failure says that it could not be read now. */
export const isLost = (thrown: unknown): thrown is TuttiError =>
  thrown instanceof TuttiError && (thrown.code === 'not_found' || thrown.code === 'data_loss')

/**
 * Brings checkpoints back, one after the other, until one of them can be had.
 *
 * @param bringBack throws for one that cannot be had; when it is not for that it is lost, nothing more is tried
 */
export async function findWhole(
  checkpoints: readonly string[],
  bringBack: (commit: string) => Promise<unknown>,
  passOver: (commit: string, problem: TuttiError) => void,
): Promise<void> {
  for (const commit of checkpoints) {
    try {
      await bringBack(commit)
      return
    } catch (thrown) {
      if (!isLost(thrown)) throw thrown
      passOver(commit, thrown)
    }
  }
}
