import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  ensemblePhases,
  initialEnsembleState,
  isEnsembleEnd,
  reduceEnsemble,
  type EnsembleInput,
} from './ensemble-status.ts'

const inputs: EnsembleInput[] = [
  { type: 'start' },
  { type: 'children_started' },
  { type: 'children_settled' },
  { type: 'attempts_gathered' },
  { type: 'finish', reason: 'completed' },
  { type: 'fail', reason: 'timeout' },
]

test('the usual way shows each phase once, in the order of the wire', () => {
  let state = initialEnsembleState
  const shown = [state.phase]
  for (const input of inputs.slice(0, 5)) shown.push((state = reduceEnsemble(state, input)).phase)
  expect(shown).toEqual(ensemblePhases.slice(0, 6))
  expect(state).toEqual({ phase: 'COMPLETED', reason: 'completed' })
})

test('an ensemble without a change completes from GATHERING', () => {
  expect(reduceEnsemble({ phase: 'GATHERING' }, { type: 'finish', reason: 'nothing_to_deliver' })).toEqual({
    phase: 'COMPLETED',
    reason: 'nothing_to_deliver',
  })
})

test.for(ensemblePhases)('%s: a failure ends it, unless it has ended', (phase) => {
  const failed = reduceEnsemble({ phase, reason: 'completed' }, { type: 'fail', reason: 'timeout' })
  expect(failed).toEqual(
    isEnsembleEnd(phase) ? { phase, reason: 'completed' } : { phase: 'ERROR', reason: 'timeout' },
  )
})

test('in every order phases only go forward, each once, and an end with its reason is final', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...inputs), { maxLength: 40 }), (given) => {
      let state = initialEnsembleState
      for (const input of given) {
        const next = reduceEnsemble(state, input)
        if (isEnsembleEnd(state.phase)) expect(next).toBe(state)
        if (next !== state)
          expect(ensemblePhases.indexOf(next.phase)).toBeGreaterThan(ensemblePhases.indexOf(state.phase))
        expect(next.reason !== undefined).toBe(isEnsembleEnd(next.phase))
        state = next
      }
    }),
  )
})
