import { z } from 'zod'
import { defineTool } from './tool.ts'

export const askTool = defineTool({
  name: 'ask',
  description:
    'Asks the person who gave the task, and waits for the answer. Only for what cannot be found out or decided without them.',
  input: z.object({
    question: z.string().min(1),
    options: z.array(z.string()).optional(),
    default: z.string().optional().describe('Taken when nobody answers'),
  }),
  async *run({ question, options, default: preset }, { openQuestion }) {
    const { questionId, answer } = openQuestion()
    yield {
      type: 'agent_question',
      questionId,
      text: question,
      ...(options === undefined ? {} : { options }),
      ...(preset === undefined ? {} : { default: preset }),
    }
    return { ok: true, value: { answer: await answer } }
  },
})
