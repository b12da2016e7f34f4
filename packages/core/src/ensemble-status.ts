import type { Reason } from './reasons.ts'

/** `aiserver.v1.ParallelAgentWorkflowStatusUpdate.Phase` without its prefix (seed 000 §7). */
export const ensemblePhases = [
  'UNSPECIFIED',
  'STARTING',
  'CHILDREN_RUNNING',
  'GATHERING',
  'SYNTHESIZING',
  'COMPLETED',
  'ERROR',
] as const
export type EnsemblePhase = (typeof ensemblePhases)[number]

export interface EnsembleState {
  readonly phase: EnsemblePhase
  /** Set once the ensemble has ended. */
  readonly reason?: Reason
}

export type EnsembleInput =
  | { readonly type: 'start' }
  | { readonly type: 'children_started' }
  | { readonly type: 'children_settled' }
  | { readonly type: 'attempts_gathered' }
  | { readonly type: 'finish'; readonly reason: Reason }
  | { readonly type: 'fail'; readonly reason: Reason }

const steps: Partial<Record<EnsemblePhase, Partial<Record<EnsembleInput['type'], EnsemblePhase>>>> = {
  UNSPECIFIED: { start: 'STARTING' },
  STARTING: { children_started: 'CHILDREN_RUNNING' },
  CHILDREN_RUNNING: { children_settled: 'GATHERING' },
  GATHERING: { attempts_gathered: 'SYNTHESIZING', finish: 'COMPLETED' },
  SYNTHESIZING: { finish: 'COMPLETED' },
}

export const initialEnsembleState: EnsembleState = { phase: 'UNSPECIFIED' }

/** Whether an ensemble in this phase has ended (design §1: COMPLETED or ERROR). */
export const isEnsembleEnd = (phase: EnsemblePhase): boolean => phase === 'COMPLETED' || phase === 'ERROR'

/**
 * The phases of an ensemble (design §1, seed 000 §7). Total: an input that does not fit the phase leaves the state as it is,
 * so that a repeated step shows each phase once. `fail` is possible from every phase that is not an end.
 */
export function reduceEnsemble(state: EnsembleState, input: EnsembleInput): EnsembleState {
  if (isEnsembleEnd(state.phase)) return state
  if (input.type === 'fail') return { phase: 'ERROR', reason: input.reason }
  const phase = steps[state.phase]?.[input.type]
  if (!phase) return state
  return input.type === 'finish' ? { phase, reason: input.reason } : { phase }
}
