import { passedCheck } from '@tutti/core'
import { distinctCandidates, leftOut } from './candidates.ts'
import type { SynthesisStrategy } from './port.ts'

/**
 * All of them in one: the candidates that passed their own check are folded together, in the order of the request; then each one
 * that failed it is added and stays only if the check still passes. When none passed, all are folded together: what each lacks
 * another may have. There is no second alternative: a whole that fails the check is a result to look at, not one to hide.
 */
export const merge: SynthesisStrategy = {
  name: 'merge',
  plan(request) {
    const candidates = distinctCandidates(request)
    const passed = candidates.filter(passedCheck).map(({ bcId }) => bcId)
    const failed = candidates.filter((attempt) => !passedCheck(attempt)).map(({ bcId }) => bcId)
    const together = passed.length > 0 ? passed : failed
    return {
      alternatives: together.length === 0 ? [] : [together],
      additions: passed.length > 0 ? failed : [],
      leftOut: leftOut(request.attempts),
    }
  },
}
