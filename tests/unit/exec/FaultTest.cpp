//===- FaultTest.cpp - RECKON_FAULT ---------------------------------------===//
//
// Part of Reckon, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "runtime/fault/Fault.h"

#include <gtest/gtest.h>

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

using namespace reckon;
using namespace reckon::fault;

TEST(Fault, Parses) {
  auto fault = parseFault("kill@rank=2,step=3");
  ASSERT_TRUE(fault.ok());
  EXPECT_EQ(fault->kind, FaultKind::Kill);
  EXPECT_EQ(fault->rank, 2);
  EXPECT_EQ(fault->step, 3);
  EXPECT_FALSE(fault->at.has_value());
  fault = parseFault("exit=7@step=1,at=0,rank=0");
  ASSERT_TRUE(fault.ok());
  EXPECT_EQ(fault->kind, FaultKind::Exit);
  EXPECT_EQ(fault->value, 7);
  EXPECT_EQ(fault->at, 0);
}

TEST(Fault, RefusesWhatItDoesNotUnderstand) {
  for (const char *text :
       {"", "kill", "kill@", "kill@rank=2", "kill@step=3",
        "explode@rank=0,"
        "step=1",
        "kill@rank=-1,step=1", "kill@rank=0,step=0",
        "kill@rank=0,step=1,when=2", "kill@rank=x,step=1",
        "exit=z@rank=0,step=1", "kill@rank,step=1",
        "kill@rank=0,step=99999999999999999999", "slow=1.5@rank=0,step=1"}) {
    auto fault = parseFault(text);
    ASSERT_FALSE(fault.ok()) << text;
    EXPECT_EQ(fault.error().code, ExitCode::BadSpec);
    EXPECT_NE(fault.error().message.find("RECKON_FAULT: expected"),
              std::string::npos);
  }
}

static int statusAfter(const Fault &fault) {
  pid_t child = fork();
  if (child == 0) {
    commitFault(fault);
    _exit(99);
  }
  int status = 0;
  waitpid(child, &status, WUNTRACED);
  if (WIFSTOPPED(status)) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  return status;
}

TEST(Fault, DoesWhatItSays) {
  Fault fault;
  int status = statusAfter(fault);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  fault.kind = FaultKind::Exit;
  fault.value = 7;
  status = statusAfter(fault);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  fault.kind = FaultKind::Stop;
  status = statusAfter(fault);
  EXPECT_TRUE(WIFSTOPPED(status));
}
