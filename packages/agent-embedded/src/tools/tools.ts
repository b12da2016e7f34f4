import { askTool } from './ask.ts'
import { editFileTool, readFileTool, writeFileTool } from './files.ts'
import { shellTool } from './shell.ts'
import { todoTool } from './todo.ts'
import type { Tool } from './tool.ts'

/** All that the embedded agent can do; every one of them acts through the agent server. */
export const tools: readonly Tool[] = [
  shellTool,
  readFileTool,
  writeFileTool,
  editFileTool,
  todoTool,
  askTool,
]
