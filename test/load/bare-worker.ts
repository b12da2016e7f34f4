import { fileURLToPath } from 'node:url'
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker'
import { bareActivities } from './bare-activities.ts'
import { bareTaskQueue } from './bare-task-queue.ts'

// A process of its own, as Tutti's worker is: `node bare-worker.ts ADDRESS`. Says READY when it polls.
Runtime.install({ logger: new DefaultLogger('ERROR') })
const connection = await NativeConnection.connect({ address: process.argv[2]! })
const worker = await Worker.create({
  connection,
  taskQueue: bareTaskQueue,
  activities: bareActivities,
  workflowsPath: fileURLToPath(new URL('./bare-workflows.ts', import.meta.url)),
})
const running = worker.run()
process.stdout.write('READY\n')
await running
await connection.close()
