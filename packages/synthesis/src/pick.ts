import { passedCheck } from '@tutti/core'
import { distinctCandidates, leftOut } from './candidates.ts'
import type { SynthesisStrategy } from './port.ts'

/**
 * The best verified attempt: each candidate is an alternative of its own. Those that passed their own check come first; within
 * both halves the order of the request decides (the children's own order), so that a repeat gives the same plan. An equal tree
 * is tried once.
 */
export const pick: SynthesisStrategy = {
  name: 'pick',
  plan(request) {
    const candidates = distinctCandidates(request)
    const ranked = [
      ...candidates.filter(passedCheck),
      ...candidates.filter((attempt) => !passedCheck(attempt)),
    ]
    return {
      alternatives: ranked.map(({ bcId }) => [bcId]),
      additions: [],
      leftOut: leftOut(request.attempts),
    }
  },
}
