import type { EnsembleId } from '@tutti/core'
import type { CloudAgentInput, CommandAnswer, CommandRequest, ParallelAgentsInput } from '@tutti/workflows'

/** What the API asks of Temporal. Every call is safe to repeat. */
export interface TemporalGateway {
  /**
   * Starts an agent's first run. One that was started before, even if it has returned since, is a success.
   * @throws TuttiError `unavailable` when Temporal cannot be reached.
   */
  startAgent(input: CloudAgentInput, signal: AbortSignal): Promise<void>

  /** Like {@link startAgent}, for the parent of an ensemble. */
  startEnsemble(input: ParallelAgentsInput, signal: AbortSignal): Promise<void>

  /**
   * Gives a command to an agent and answers with what its state machine said. An agent whose run has returned is reopened from
   * `input`, its stored state.
   *
   * @throws TuttiError `failed_precondition` for a refusal, with the workflow's own words; `unavailable` when no worker answers.
   */
  agentCommand(input: CloudAgentInput, request: CommandRequest, signal: AbortSignal): Promise<CommandAnswer>

  /** Asks an ensemble to stop. One that has ended is a success. */
  stopEnsemble(ensembleId: EnsembleId, requestId: string, signal: AbortSignal): Promise<void>

  /** Whether Temporal answers. @throws TuttiError `unavailable`. */
  ready(signal: AbortSignal): Promise<void>
}
