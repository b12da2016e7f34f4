import { isMainThread } from 'node:worker_threads'
import { watchParent } from './watch-parent.mjs'

const parent = Number(process.env['TUTTI_PARENT_PID'])
delete process.env['TUTTI_PARENT_PID']

/** Preloaded into a program that has a session of its own: when its launcher is killed outright, it drains and ends. */
if (isMainThread && process.ppid === parent) watchParent(() => process.kill(process.pid, 'SIGTERM'))
