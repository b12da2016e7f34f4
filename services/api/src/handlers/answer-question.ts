import { TuttiError, type AgentId } from '@tutti/core'
import type { AnswerQuestionRequest } from '@tutti/proto'
import { encodeRunEvent } from '@tutti/protocol'

import { callerOf } from '../call-context.ts'
import { agentIdOf } from '../commands.ts'
import type { CallContext, HandlerDeps } from '../handler.ts'
import { requestIdOf } from '../new-id.ts'

/**
 * `AnswerQuestion`: the answer goes into the agent's log, where the waiting turn reads it. The first answer counts; the same one again
 * is a success.
 */
export function createAnswerQuestion({ catalog, eventLog, recordViews }: HandlerDeps) {
  return async (request: AnswerQuestionRequest, context: CallContext) => {
    const { signal } = context
    const { owner } = callerOf(context)
    const bcId = agentIdOf(request.bcId)
    const { openQuestion, state } = await catalog.agents.get(owner, bcId, signal)
    if (!openQuestion) {
      throw new TuttiError('failed_precondition', 'The agent waits for no answer.', { state: state.status })
    }
    const { questionId } = openQuestion
    if (request.questionId !== '' && request.questionId !== questionId) {
      throw new TuttiError(
        'failed_precondition',
        `That question is not open; the open one is ${JSON.stringify(questionId)}.`,
        {
          field: 'question_id',
          question_id: questionId,
        },
      )
    }
    // Named after the question, so that of two answers the log takes one.
    const commandId = requestIdOf(owner, `${bcId}/${questionId}`)
    const record = encodeRunEvent({ type: 'answer', commandId, questionId, text: request.answer })
    const appended = await eventLog.append(
      bcId,
      { id: `client/${commandId}`, epoch: 0, sequence: 1 },
      [record],
      signal,
    )
    if (appended.repeated && (await answerAt(bcId, appended.first, signal)) !== request.answer) {
      throw new TuttiError('failed_precondition', 'The question has been answered already.', {
        question_id: questionId,
      })
    }
    return { questionId }
  }

  async function answerAt(bcId: AgentId, sequence: number, signal: AbortSignal): Promise<string | undefined> {
    const { records } = await eventLog.read(bcId, sequence - 1, { maxBytes: 1 }, signal)
    const event = records[0] && recordViews.of(bcId, records[0]).event
    return event?.type === 'answer' ? event.text : undefined
  }
}
