import { crashPointsOf } from './crash-points-of.ts'
import { dieInCourses } from './die-in-courses.ts'

dieInCourses(crashPointsOf.turns)
