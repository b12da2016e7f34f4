import { z } from 'zod'
import { defineTool } from './tool.ts'

export const todoTool = defineTool({
  name: 'todo',
  description:
    'Replaces the list of things to do. Keep it for work of several steps, one item in progress at a time.',
  input: z.object({
    todos: z
      .array(z.object({ text: z.string(), status: z.enum(['pending', 'in_progress', 'completed']) }))
      .max(100),
  }),
  // oxlint-disable-next-line require-yield -- the call itself carries the list
  async *run({ todos }, { setTodos }) {
    setTodos(todos)
    return { ok: true, value: { open: todos.filter((todo) => todo.status !== 'completed').length } }
  },
})
