import {
  BackgroundComposerStatusSchema,
  CheckStatusSchema,
  CloudAgentWorkflowStatusSchema,
  ParallelAgentWorkflowStatusUpdate_PhaseSchema,
  PullRequestStateSchema,
} from '@tutti/proto'
import type { AgentStatus, ComposerStatus, EnsemblePhase } from '@tutti/core'

interface EnumShape {
  readonly values: readonly { readonly name: string; readonly number: number }[]
  readonly sharedPrefix?: string | undefined
}

/** The name of an enum's value without the enum's prefix; `UNSPECIFIED` for a number that this version does not know. */
function enumName(desc: EnumShape, number: number): string {
  const name = desc.values.find((value) => value.number === number)?.name
  return name === undefined ? 'UNSPECIFIED' : name.slice((desc.sharedPrefix ?? '').length)
}

export const phaseName = (number: number): EnsemblePhase =>
  enumName(ParallelAgentWorkflowStatusUpdate_PhaseSchema, number) as EnsemblePhase
export const composerStatusName = (number: number): ComposerStatus =>
  enumName(BackgroundComposerStatusSchema, number) as ComposerStatus
export const agentStatusName = (number: number): AgentStatus =>
  enumName(CloudAgentWorkflowStatusSchema, number) as AgentStatus
export const pullRequestStateName = (number: number): string =>
  enumName(PullRequestStateSchema, number).toLowerCase()
export const checkStatusName = (number: number): string => enumName(CheckStatusSchema, number).toLowerCase()
