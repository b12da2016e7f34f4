import type { AgentStatus, ComposerStatus, EnsemblePhase } from '@tutti/core'
import {
  BackgroundComposerSource,
  BackgroundComposerStatus,
  CloudAgentWorkflowStatus,
  ParallelAgentWorkflowStatusUpdate_Phase,
} from '@tutti/proto'

/** `aiserver.v1.BackgroundComposerSource` without its prefix (seed 001). */
export type SourceName = keyof typeof BackgroundComposerSource

export const workflowStatusToWire = (status: AgentStatus): CloudAgentWorkflowStatus =>
  CloudAgentWorkflowStatus[status]

/** A value that this version does not know becomes UNSPECIFIED. */
export const workflowStatusFromWire = (value: CloudAgentWorkflowStatus): AgentStatus =>
  (CloudAgentWorkflowStatus[value] as AgentStatus | undefined) ?? 'UNSPECIFIED'

export const composerStatusToWire = (status: ComposerStatus): BackgroundComposerStatus =>
  BackgroundComposerStatus[status]

export const composerStatusFromWire = (value: BackgroundComposerStatus): ComposerStatus =>
  (BackgroundComposerStatus[value] as ComposerStatus | undefined) ?? 'UNSPECIFIED'

export const phaseToWire = (phase: EnsemblePhase): ParallelAgentWorkflowStatusUpdate_Phase =>
  ParallelAgentWorkflowStatusUpdate_Phase[phase]

export const phaseFromWire = (value: ParallelAgentWorkflowStatusUpdate_Phase): EnsemblePhase =>
  (ParallelAgentWorkflowStatusUpdate_Phase[value] as EnsemblePhase | undefined) ?? 'UNSPECIFIED'

/** Turns carry the name as text; one that the wire does not know becomes UNSPECIFIED. */
export const sourceToWire = (name: string): BackgroundComposerSource =>
  Object.hasOwn(BackgroundComposerSource, name) && Number.isNaN(Number(name))
    ? BackgroundComposerSource[name as SourceName]
    : BackgroundComposerSource.UNSPECIFIED

export const sourceFromWire = (value: BackgroundComposerSource): SourceName =>
  (BackgroundComposerSource[value] as SourceName | undefined) ?? 'UNSPECIFIED'
